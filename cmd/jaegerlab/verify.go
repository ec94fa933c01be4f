package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"jaegerlab/report/verify"
)

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [DIR]",
		Short: "derive a saved comparison's figures again from its raw facts, name those that can't be, and fail when one bit differs",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := filepath.Join("results", "latest")
			if len(args) == 1 {
				dir = args[0]
			}
			result, err := verify.Dir(dir)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			for _, note := range result.Notes {
				fmt.Fprintln(out, "note:", note)
			}
			for _, taken := range result.Taken {
				fmt.Fprintf(out, "taken from %s (its checksum vouches for them, nothing else gives them): %s\n",
					taken.File, strings.Join(taken.Figures, ", "))
			}
			for _, problem := range result.Problems {
				fmt.Fprintln(out, "DIFFERS:", problem)
			}
			fmt.Fprintf(out, "%s: %d runs, %d files as they were, %d figures derived again\n",
				result.ID, result.Runs, result.Files, result.Figures)
			if !result.Whole() {
				return fmt.Errorf("verify %s: %d things differ from what the run left", dir, len(result.Problems))
			}
			return nil
		},
	}
}
