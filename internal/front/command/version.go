package command

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/setup"
)

func (c *command) version() *cobra.Command {
	var check bool
	var from string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version; --check looks for a newer one",
		Long: "--check reads the public list of releases, with one request that says nothing about you. inspan never looks for releases\n" +
			"by itself.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("from") && !check {
				return misused("--from needs --check")
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "inspan %s %s/%s %s%s\n", setup.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version(), revision())
			if !check {
				return nil
			}
			newest, err := setup.Newest(cmd.Context(), from)
			if err != nil {
				return err
			}
			compare(out, newest)
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "look for a newer release")
	cmd.Flags().StringVar(&from, "from", setup.Releases, "`URL` of the list of releases, in GitHub's format")
	return cmd
}

// compare says whether a release is newer than this build.
func compare(out io.Writer, newest setup.Release) {
	if newest.Newer(setup.Version()) {
		fmt.Fprintf(out, "%s is available: %s\nTo update, %s\n", newest.Tag, newest.Page, updates())
		return
	}
	fmt.Fprintf(out, "This is up to date; the newest release is %s.\n", newest.Tag)
}

// revision returns the commit that the binary was built from, if known.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return fmt.Sprintf(" %.12s", s.Value)
		}
	}
	return ""
}
