package cli

import (
	"io"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
)

// newOptionsCommand returns the command that prints the flags which every command takes.
func newOptionsCommand(out io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "options",
		Short: "Print the flags that every command takes",
		Args:  cobra.NoArgs,
		Run:   func(cmd *cobra.Command, _ []string) { cmdutil.CheckErr(cmd.Usage()) },
	}
	cmd.SetOut(out)
	cmd.SetErr(out)
	templates.UseOptionsTemplates(cmd)
	return cmd
}
