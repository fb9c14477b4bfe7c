package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
	utilexec "k8s.io/utils/exec"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/interrupt"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/piped"
)

// importManager is the field manager of plugins that were imported.
const importManager = "manifold-plugin-import"

// lost is the exit code when something of the file is not honoured and that is asked about.
const lost = 2

// ImportOptions are what "plugin import" needs.
type ImportOptions struct {
	genericiooptions.IOStreams

	logical
	// File is that of a piped, - for standard input.
	File string
	// Checksums are those of programs, by the names of their plugins. Those that are not there are made.
	Checksums map[string]string
	// Strict refuses a file of which something is not honoured.
	Strict bool
	// Apply makes the plugins instead of printing them, and DryRun has the server only try.
	Apply, DryRun bool
	Output        output.Format

	// pin fetches a program to tell its checksum.
	pin func(ctx context.Context, url string, options fetch.Options) (fetch.File, error)
}

func newImportCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &ImportOptions{IOStreams: streams, Output: output.YAML, pin: fetch.Pin}
	cmd := &cobra.Command{
		Use:                   "import FILE [--sha256 NAME=CHECKSUM]... [--strict] [--apply [--dry-run]] [-o json|yaml]",
		DisableFlagsInUseLine: true,
		Short:                 "Make plugins of the configuration of a piped",
		Long: templates.LongDesc(`
			Make plugins of a file of kind Piped, in both spellings of its list of plugins, and print them; "kubectl diff -f -" takes what is
			printed, and shows what would change. What of the file is about something else is
			named on standard error; with --strict, that ends the command with exit code 2, and nothing is made.

			The file holds no checksums, without which nothing runs. This command fetches each program, where it runs itself, and tells the
			checksum of what has come on standard error: compare it with what the publisher says. --sha256 says what it must be, and nothing is
			fetched then.`),
		Example: templates.Examples(`
			# Look at them
			manifold plugin import piped.yaml

			# Make them, with a checksum that the publisher has told
			manifold plugin import piped.yaml --sha256 wait=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --apply`),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdutil.UsageErrorf(cmd, "exactly one FILE is required, got %d", len(args))
			}
			o.File = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			if o.Apply {
				if err := o.connect(f); err != nil {
					return err
				}
			}
			return interrupt.Run(cmd.Context(), o.Run)
		},
	}
	o.Output.AddFlag(cmd)
	flags := cmd.Flags()
	flags.StringToStringVar(&o.Checksums, "sha256", o.Checksums, "The SHA-256 of a plugin's program, as NAME=CHECKSUM. May be given several times.")
	flags.BoolVar(&o.Strict, "strict", o.Strict, "Refuse a file of which something is not honoured, with exit code 2.")
	flags.BoolVar(&o.Apply, "apply", o.Apply, "Make the plugins instead of printing them.")
	flags.BoolVar(&o.DryRun, "dry-run", o.DryRun, "With --apply: have the server try, and keep nothing.")
	return cmd
}

// Validate refuses a trial of nothing.
func (o *ImportOptions) Validate() error {
	if o.DryRun && !o.Apply {
		return errors.New("--dry-run is for --apply; without it, nothing is made anyway")
	}
	return nil
}

// Run reads the file, and prints or makes the plugins.
func (o *ImportOptions) Run(ctx context.Context) error {
	read, err := o.read()
	if err != nil {
		return err
	}
	for _, unhonoured := range read.Unhonoured {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", text.Line(unhonoured.String(), longest))
	}
	if number := len(read.Unhonoured); number > 0 && o.Strict {
		return utilexec.CodeExitError{Err: fmt.Errorf("error: %d fields of %s are not honoured", number, o.File), Code: lost}
	}
	for name := range o.Checksums {
		if !slices.ContainsFunc(read.Plugins, func(p v1alpha1.Plugin) bool { return p.Name == name || p.Called() == name }) {
			return fmt.Errorf("--sha256 %s=...: the file has no plugin of the name", name)
		}
	}
	// All of them are found to be valid before one is made.
	var manifests []map[string]any
	for i := range read.Plugins {
		manifest, err := o.manifest(ctx, &read.Plugins[i])
		if err != nil {
			return err
		}
		manifests = append(manifests, manifest)
	}
	if !o.Apply {
		return o.print(manifests)
	}
	return o.apply(ctx, manifests)
}

func (o *ImportOptions) read() (*piped.Piped, error) {
	from := o.In
	if o.File != "-" {
		file, err := os.Open(o.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	const most = 1<<20 + 1 // what is longer is refused by the reader of it
	content, err := io.ReadAll(io.LimitReader(from, most))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.File, err)
	}
	read, err := piped.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.File, err)
	}
	return read, nil
}

// manifest is a plugin as somebody would write it, with its checksum, once it is known to be accepted.
func (o *ImportOptions) manifest(ctx context.Context, plugin *v1alpha1.Plugin) (map[string]any, error) {
	if plugin.Spec.Sha256 = cmp.Or(o.Checksums[plugin.Name], o.Checksums[plugin.Called()]); plugin.Spec.Sha256 == "" {
		pinned, err := o.pin(ctx, plugin.Spec.URL, fetch.Options{})
		if err != nil {
			return nil, fmt.Errorf("plugin %q: make the checksum of its program, which --sha256 %s=CHECKSUM says as well: %w", plugin.Name, plugin.Name, err)
		}
		plugin.Spec.Sha256 = pinned.Sha256
		fmt.Fprintf(o.ErrOut, "plugin/%s: what has come has the SHA-256 %s; compare it with what the publisher says\n", plugin.Name, pinned.Sha256)
	}
	checked := plugin.DeepCopy()
	v1alpha1.SetObjectDefaults_Plugin(checked)
	if errs := validation.ValidatePlugin(checked); len(errs) > 0 {
		return nil, fmt.Errorf("plugin %q is not valid: %w", plugin.Name, errs.ToAggregate())
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(plugin)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	for object, field := range map[string]string{"metadata": "creationTimestamp", "spec": "limits"} { // which are empty
		if of, ok := content[object].(map[string]any); ok {
			delete(of, field)
		}
	}
	return content, nil
}

// print writes documents that kubectl takes.
func (o *ImportOptions) print(manifests []map[string]any) error {
	if o.Output == output.JSON {
		return o.Output.Print(o.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": manifests}, nil)
	}
	for i, manifest := range manifests {
		if i > 0 {
			fmt.Fprintln(o.Out, "---")
		}
		if err := output.YAML.Print(o.Out, manifest, nil); err != nil {
			return err
		}
	}
	return nil
}

// apply makes the plugins. One that the server refuses keeps it from none of the others.
func (o *ImportOptions) apply(ctx context.Context, manifests []map[string]any) error {
	options, done := metav1.PatchOptions{FieldManager: importManager, Force: ptr.To(false)}, "imported"
	if o.DryRun {
		options.DryRun, done = []string{metav1.DryRunAll}, "imported (server dry run)"
	}
	var failed []error
	for _, manifest := range manifests {
		name := manifest["metadata"].(map[string]any)["name"].(string)
		data, err := json.Marshal(manifest)
		if err != nil {
			return err
		}
		if _, err := o.plugins().Patch(ctx, name, types.ApplyPatchType, data, options); err != nil {
			failed = append(failed, fmt.Errorf("plugin %q: %w", name, err))
			continue
		}
		fmt.Fprintf(o.Out, "plugin/%s %s\n", name, done)
	}
	return errors.Join(failed...)
}
