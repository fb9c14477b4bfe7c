// Package target finds the one object that a command is about.
package target

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/manifold-dev/manifold/pkg/projection"
)

// Finder reads an object from the logical cluster, and how the cluster serves its kind.
type Finder func() (*unstructured.Unstructured, *meta.RESTMapping, error)

// Of returns what finds the object that the arguments name, as KIND/NAME or KIND NAME. Usage says what is required, for the error about
// other arguments; several says, with their number as %d, that the arguments name more than one.
func Of(f cmdutil.Factory, cmd *cobra.Command, args []string, usage, several string) (Finder, error) {
	if len(args) == 0 || len(args) > 2 {
		return nil, cmdutil.UsageErrorf(cmd, "%s", usage)
	}
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	return func() (*unstructured.Unstructured, *meta.RESTMapping, error) {
		infos, err := f.NewBuilder().
			Unstructured().NamespaceParam(namespace).DefaultNamespace().
			ResourceTypeOrNameArgs(false, args...).Latest().Flatten().
			Do().Infos()
		if err != nil {
			return nil, nil, err
		}
		if len(infos) != 1 {
			return nil, nil, fmt.Errorf(several, len(infos))
		}
		object, ok := infos[0].Object.(*unstructured.Unstructured)
		if !ok {
			return nil, nil, fmt.Errorf("%s is a list; name one object of it", infos[0].ObjectName())
		}
		return object, infos[0].Mapping, nil
	}, nil
}

// CompleteWorkload offers workloads by kind and name.
func CompleteWorkload(f cmdutil.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		var kinds []string
		for _, w := range projection.Workloads() {
			kinds = append(kinds, strings.ToLower(w.GVK.Kind))
		}
		return completion.SpecifiedResourceTypeAndNameNoRepeatCompletionFunc(f, kinds)(cmd, args, typed)
	}
}
