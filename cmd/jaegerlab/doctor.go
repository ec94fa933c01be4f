package main

import (
	"fmt"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
	"github.com/spf13/cobra"

	"jaegerlab/lab/setup"
)

func doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "check this machine: what it has, what the lab needs, and the remedy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := tablewriter.NewTable(cmd.OutOrStdout(), tablewriter.WithRowAutoWrap(tw.WrapNormal), tablewriter.WithRowMaxWidth(36))
			table.Header("check", "state", "have", "need", "remedy")
			for _, check := range setup.Doctor(cmd.Context()) {
				if err := table.Append(check.Name, string(check.State), check.Have, check.Need, check.Remedy); err != nil {
					return fmt.Errorf("add the check %s to the table: %w", check.Name, err)
				}
			}
			return table.Render()
		},
	}
}
