package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
	utilexec "k8s.io/utils/exec"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/pipecd"
)

// importManager is the field manager of applications that were imported.
const importManager = "manifold-app-import"

// ImportOptions are what "app import" needs.
type ImportOptions struct {
	genericiooptions.IOStreams

	// Dir is the folder of the file, or the file itself.
	Dir string
	// Name is that of the application; unset, it is the file's.
	Name string
	// Git is where the folder is for everybody else.
	Git v1alpha1.GitSource
	// Config is what the file leaves to the configuration of piped.
	Config v1alpha1.PipecdConfig
	// Branch is the branch of it that is followed; unset, it is the repository's default.
	Branch string
	// Plugins are the names of those that the application uses, and PluginsOnly says that nothing else delivers it.
	Plugins     []string
	PluginsOnly bool
	// ServiceAccount is the name of the one as which the objects of the application are written.
	ServiceAccount string
	// Strict refuses files of which something is not honoured.
	Strict bool
	// Apply makes the application instead of printing it.
	Apply bool

	subject subject
	// file is the path of the file.
	file string
}

func newImportCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &ImportOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use: "import DIR --git-url URL [--git-path PATH] [--git-branch BRANCH] [--name NAME] [--analysis-provider NAME=URL] [--script-image IMAGE]" +
			" [--plugin NAME]... [--plugins-only] [--serviceaccount NAME] [--strict] [--apply]",
		DisableFlagsInUseLine: true,
		Short:                 "Make an application of an app.pipecd.yaml",
		Long: templates.LongDesc(`
			Make an application of PipeCD's file app.pipecd.yaml in a folder, in any of its spellings, and print it. What of the file nobody
			acts upon is named on standard error; with --strict, that ends the command with exit code 2, and nothing is made.

			The file does not say which repository it lies in: --git-url and --git-path do. Nor does it hold what it refers to in the
			configuration of piped: --analysis-provider has the addresses of the providers that metrics name, and --script-image the image that
			scripts run in which name none.

			Plugins of the file are those that are built in, unless --plugin names them: then the Plugins of these names run their stages, for
			which whoever makes the application needs the right to use them. --plugins-only is for files of other platforms than Kubernetes.

			Manifests of Istio, and of other kinds that Manifold has no right to by itself, are applied as the ServiceAccount that
			--serviceaccount names.`),
		Example: templates.Examples(`
			# Look at it
			manifold app import ./shop/prd --git-url https://git.example/shop.git --git-path shop/prd

			# Make it, unless something would get lost
			manifold app import ./shop/prd --git-url https://git.example/shop.git --git-path shop/prd -n shop --strict --apply

			# One that plugins deliver
			manifold app import ./infra --git-url https://git.example/shop.git --git-path infra --plugin terraform --plugins-only`),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdutil.UsageErrorf(cmd, "exactly one DIR is required, got %d", len(args))
			}
			o.Dir = args[0]
			if err := o.Complete(f, cmd); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Name, "name", o.Name, "The name of the application. The default is the one in the file.")
	flags.StringVar(&o.Git.URL, "git-url", o.Git.URL, "The address of the repository that the folder is in, without credentials.")
	flags.StringVar(&o.Git.Path, "git-path", o.Git.Path, "The folder, from the root of the repository. The default is the root.")
	flags.StringToStringVar(&o.Config.AnalysisProviders, "analysis-provider", o.Config.AnalysisProviders,
		"The address of the Prometheus server that metrics name, as NAME=URL. May be given several times.")
	flags.StringVar(&o.Config.ScriptImage, "script-image", o.Config.ScriptImage, "The image that scripts run in which name none.")
	flags.StringVar(&o.Branch, "git-branch", o.Branch, "The branch that is followed. The default is the repository's.")
	flags.StringSliceVar(&o.Plugins, "plugin", o.Plugins, "The name of a plugin that the application uses, as the file or the Plugin has it. May be given several times.")
	flags.BoolVar(&o.PluginsOnly, "plugins-only", o.PluginsOnly, "Nothing but these plugins delivers the application.")
	flags.StringVar(&o.ServiceAccount, "serviceaccount", o.ServiceAccount, "The ServiceAccount of the namespace whose rights the application has.")
	flags.BoolVar(&o.Strict, "strict", o.Strict, "Refuse a file of which something is not honoured, with exit code 2.")
	flags.BoolVar(&o.Apply, "apply", o.Apply, "Make the application instead of printing it.")
	cmdutil.CheckErr(cmd.MarkFlagRequired("git-url"))
	return cmd
}

// Complete finds the namespace, and the logical cluster if that is needed.
func (o *ImportOptions) Complete(f cmdutil.Factory, cmd *cobra.Command) error {
	if o.Apply {
		return o.subject.complete(f, cmd, []string{o.Name})
	}
	var err error
	o.subject.Namespace, _, err = f.ToRawKubeConfigLoader().Namespace()
	return err
}

// Run reads the file, and prints or makes the application.
func (o *ImportOptions) Run(ctx context.Context) error {
	if o.PluginsOnly && len(o.Plugins) == 0 {
		return errors.New("--plugins-only is for applications of plugins: name them by --plugin")
	}
	uses := pipecd.Uses{Only: o.PluginsOnly, Account: o.ServiceAccount != ""}
	for _, name := range o.Plugins {
		uses.Plugins = append(uses.Plugins, v1alpha1.PluginNameOf(name))
	}
	var err error
	if o.file, err = pipecdIn(o.Dir); err != nil {
		return err
	}
	read, err := readPipecd(o.file, o.Config, uses)
	if err != nil {
		return fmt.Errorf("%w%s", err, pluginAdvice(err))
	}
	read.Spec.Plugins, read.Spec.PluginsOnly, read.Spec.ServiceAccountName = nil, o.PluginsOnly, o.ServiceAccount
	for _, name := range uses.Plugins {
		read.Spec.Plugins = append(read.Spec.Plugins, v1alpha1.ApplicationPlugin{Name: name}) // the file says the rest of it
	}
	labels, unfit := labelsOf(read)
	read.Labels, read.Unhonoured = labels, append(read.Unhonoured, unfit...)
	read.Unhonoured = append(read.Unhonoured, read.Otherwise(o.metadata(read))...)
	for _, unhonoured := range read.Unhonoured {
		if strings.HasPrefix(unhonoured.Path, "spec.plugins") {
			unhonoured.Why += "; --plugin NAME has the application use the Plugin of the name"
		}
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", text.Line(unhonoured.String(), longest))
	}
	if of := read.Spec.Traffic; of != nil && of.Method == v1alpha1.TrafficVirtualService && of.Name != "" && o.ServiceAccount == "" {
		fmt.Fprintf(o.ErrOut, "Warning: if VirtualService %s is among the manifests, it is applied as a ServiceAccount that may apply it: name one by --serviceaccount\n",
			text.Line(of.Name, longest))
	}
	if number := len(read.Unhonoured); number > 0 && o.Strict {
		const lost = 2
		return utilexec.CodeExitError{Err: fmt.Errorf("error: %d fields of %s are not honoured", number, o.Dir), Code: lost}
	}
	application, err := o.application(read)
	if err != nil {
		return err
	}
	written, err := manifest(application)
	if err != nil {
		return err
	}
	if !o.Apply {
		_, err = o.Out.Write(written)
		return err
	}
	if _, err := o.subject.applications().Patch(ctx, application.Name, types.ApplyPatchType, written,
		metav1.PatchOptions{FieldManager: importManager, Force: ptr.To(false)}); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "application/%s imported\n", application.Name)
	return nil
}

// application is what the file becomes, once it is known to be accepted.
func (o *ImportOptions) application(read *pipecd.Application) (*v1alpha1.Application, error) {
	application := &v1alpha1.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Application"},
		ObjectMeta: *o.metadata(read),
		Spec:       read.Spec,
	}
	if o.Name != "" {
		application.Name = o.Name
	}
	git := o.Git
	if config := o.config(); len(config.AnalysisProviders) > 0 || config.ScriptImage != "" || config.File != "" {
		git.Pipecd = &config // the file is read from there as well
	}
	if o.Branch != "" {
		git.Ref = &v1alpha1.GitRef{Branch: o.Branch}
	}
	application.Spec.Source = v1alpha1.Source{Git: &git}
	checked := application.DeepCopy()
	v1alpha1.SetObjectDefaults_Application(checked)
	if errs := validation.ValidateApplication(checked); len(errs) > 0 {
		return nil, fmt.Errorf("the application that %s makes is not valid: %w%s", o.Dir, errs.ToAggregate(), nameAdvice(errs))
	}
	return application, nil
}

// metadata is that of the application as the file names it.
func (o *ImportOptions) metadata(read *pipecd.Application) *metav1.ObjectMeta {
	out := &metav1.ObjectMeta{Namespace: o.subject.Namespace, Name: read.Name, Labels: read.Labels}
	if read.Description != "" {
		out.Annotations = map[string]string{pipecd.DescriptionAnnotation: read.Description}
	}
	return out
}

// config is what the server is to know to read the file as well.
func (o *ImportOptions) config() v1alpha1.PipecdConfig {
	out := o.Config
	if name := filepath.Base(o.file); name != v1alpha1.PipecdFile {
		out.File = name
	}
	return out
}

// labelsOf are the labels of a file that an object can have, and the others.
func labelsOf(read *pipecd.Application) (labels map[string]string, unfit []pipecd.Unhonoured) {
	for _, key := range slices.Sorted(maps.Keys(read.Labels)) {
		value := read.Labels[key]
		if why := append(utilvalidation.IsQualifiedName(key), utilvalidation.IsValidLabelValue(value)...); len(why) > 0 {
			unfit = append(unfit, pipecd.Unhonoured{Path: field.NewPath("spec", "labels").Key(key).String(), Why: "it can be no label of an object: " + why[0]})
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, unfit
}

// nameAdvice says what to do about a name that cannot be one.
func nameAdvice(errs field.ErrorList) string {
	for _, err := range errs {
		if err.Field == "metadata.name" {
			return "\n--name gives it another name"
		}
	}
	return ""
}

// pluginAdvice says what to do about a file that is for plugins which nobody has named.
func pluginAdvice(err error) string {
	for _, one := range causes(err) {
		if of := (*field.Error)(nil); errors.As(one, &of) && of.Field == "spec.plugins" {
			return "\n--plugin NAME has the application use the Plugin of the name, and --plugins-only nothing else"
		}
	}
	return ""
}

// causes are the errors that one consists of.
func causes(err error) []error {
	var all utilerrors.Aggregate
	if errors.As(err, &all) {
		return all.Errors()
	}
	return []error{err}
}

// pipecdIn is the path of the file in a folder, or of the file itself.
func pipecdIn(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return dir, err
	}
	file := filepath.Join(dir, v1alpha1.PipecdFile)
	_, err = os.Stat(file)
	if !errors.Is(err, os.ErrNotExist) {
		return file, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var others []string
	for _, entry := range entries {
		if v1alpha1.IsPipecdFile(entry.Name()) {
			others = append(others, entry.Name())
		}
	}
	if len(others) > 0 {
		return "", fmt.Errorf("there is no %s; name one of the files that there are: %s", file, text.Line(strings.Join(others, ", "), longest))
	}
	return "", fmt.Errorf("there is no %s; name the folder that it is in", file)
}

// readPipecd reads the file.
func readPipecd(path string, config v1alpha1.PipecdConfig, uses pipecd.Uses) (*pipecd.Application, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const most = 1<<20 + 1 // what is longer is refused by the reader of it
	content, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	read, err := pipecd.ParseFor(content, config, uses)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return read, nil
}

// manifest writes an application as somebody would, without what only the server says.
func manifest(application *v1alpha1.Application) ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(application)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	if spec, ok := content["spec"].(map[string]any); ok {
		for _, field := range []string{"trigger", "rollback", "variantLabel"} {
			if empty, ok := spec[field].(map[string]any); ok && len(empty) == 0 {
				delete(spec, field)
			}
		}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	out, err := yaml.JSONToYAML([]byte(text.Escape(string(data))))
	if err != nil {
		return nil, fmt.Errorf("write application %q: %w", application.Name, err)
	}
	return out, nil
}
