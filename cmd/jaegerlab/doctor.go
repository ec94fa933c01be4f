package main

import (
	"fmt"
	"os"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
	"github.com/spf13/cobra"

	"jaegerlab/lab"
	"jaegerlab/lab/setup"
	"jaegerlab/lab/spec"
)

func doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "check this machine: what it has, what the lab needs, and the remedy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := tablewriter.NewTable(cmd.OutOrStdout(), tablewriter.WithRowAutoWrap(tw.WrapNormal), tablewriter.WithRowMaxWidth(36))
			table.Header("check", "state", "have", "need", "remedy")
			s, err := spec.FromEnv(os.Environ())
			if err != nil {
				return fmt.Errorf("what is set in the environment can't be run:\n%w", err)
			}
			checks := setup.Doctor(cmd.Context())
			if s.Target != nil {
				checks = append(checks, lab.TryTarget(cmd.Context(), s)...)
			}
			for _, check := range checks {
				if err := table.Append(check.Name, string(check.State), check.Have, check.Need, check.Remedy); err != nil {
					return fmt.Errorf("add the check %s to the table: %w", check.Name, err)
				}
			}
			return table.Render()
		},
	}
}
