package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"jaegerlab/report"
)

// Exit codes of compare, so that a pipeline can tell a regression from a result that says
// nothing and from one that can't be read.
const (
	exitRegression = 1
	exitUnreadable = 2
	exitUnknown    = 3
)

// exitError is an error with an exit code of its own.
type exitError struct {
	error
	code int
}

// ExitCode is what the process ends with.
func (e exitError) ExitCode() int { return e.code }

func (e exitError) Unwrap() error { return e.error }

// exitCode is 1 for every error that does not say otherwise.
func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return 1
}

func compareCommand() *cobra.Command {
	var threshold, quantity string
	cmd := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "compare two saved results, arm by arm, and fail on a regression",
		Long: `Compare two saved results of any version and host, arm by arm. What else differs is listed.

Exit code: 0 no arm got worse by more than the threshold; 1 a regression: worse by more than the
threshold and by more than noise, or acked spans are missing that were not; 2 a result can't be
read or the arguments are wrong; 3 unknown: a regression can be neither found nor excluded.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(2)(cmd, args); err != nil {
				return exitError{fmt.Errorf("compare: two results are needed, OLD and NEW: %w", err), exitUnreadable}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			share, err := parsePercent(threshold)
			if err != nil {
				return exitError{err, exitUnreadable}
			}
			compared, err := compareSaved(args[0], args[1], share, quantity)
			if err != nil {
				return exitError{err, exitUnreadable}
			}
			if err := report.Terminal(cmd.OutOrStdout(), compared.Doc); err != nil {
				return exitError{err, exitUnreadable}
			}
			switch compared.Gate {
			case report.Regressed:
				return exitError{errors.New("compare: regression"), exitRegression}
			case report.Undecided:
				return exitError{errors.New("compare: unknown: a regression can be neither found nor excluded"), exitUnknown}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exitError{err, exitUnreadable} })
	cmd.Flags().StringVar(&threshold, "threshold", "5%", "change for the worse that is a regression")
	cmd.Flags().StringVar(&quantity, "quantity", "", "what is compared; default: spans stored in the window, by the "+
		"best source that both results have")
	return cmd
}

func compareSaved(oldDir, newDir string, threshold float64, quantity string) (report.Compared, error) {
	old, err := report.ReadSaved(oldDir)
	if err != nil {
		return report.Compared{}, fmt.Errorf("compare: OLD: %w", err)
	}
	new, err := report.ReadSaved(newDir)
	if err != nil {
		return report.Compared{}, fmt.Errorf("compare: NEW: %w", err)
	}
	return report.Compare(old, new, threshold, quantity)
}

// parsePercent reads "5%" or "0.05".
func parsePercent(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 0, fmt.Errorf("compare: --threshold=%q: accepted is a percentage such as 5%%, or a share such as 0.05", text)
	}
	if percent {
		share /= 100
	}
	return share, nil
}
