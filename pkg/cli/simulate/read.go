package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// chunk is how many objects are asked for at a time.
const chunk = 500

// read hands over what files hold.
func (o *Options) read(files resource.FilenameOptions, take func(*unstructured.Unstructured) error) error {
	builder := o.factory.NewBuilder().Unstructured().Local()
	if slices.Contains(files.Filenames, "-") {
		builder = builder.Stream(o.In, "standard input")
		files.Filenames = slices.DeleteFunc(slices.Clone(files.Filenames), func(name string) bool { return name == "-" })
	}
	if len(files.Filenames) > 0 || files.Kustomize != "" {
		builder = builder.FilenameParam(false, &files)
	}
	return each(builder.Flatten().Do(), take)
}

// ask hands over what the logical cluster holds of all that decisions depend on.
func (o *Options) ask(take func(*unstructured.Unstructured) error) error {
	discovery, err := o.factory.ToDiscoveryClient()
	if err != nil {
		return err
	}
	if _, err := discovery.ServerVersion(); err != nil {
		return fmt.Errorf("%w; without a logical cluster at hand, --clusters FILENAME reads them from a file", err)
	}
	var resources []string
	for _, k := range kinds() {
		resources = append(resources, k.resource)
	}
	settings := o.factory.NewBuilder().Unstructured().NamespaceParam(metav1.NamespacePublic).ResourceNames("configmaps", v1alpha1.SettingsName).Flatten().Do().
		IgnoreErrors(apierrors.IsNotFound, apierrors.IsForbidden) // an older one says nothing
	if err := each(settings, take); err != nil {
		return err
	}
	return each(o.factory.NewBuilder().Unstructured().AllNamespaces(true).RequestChunksOf(chunk).
		ResourceTypeOrNameArgs(true, strings.Join(resources, ",")).Flatten().Do(), take)
}

// each hands over the objects of a result, and names the file and the object that something is wrong with.
func each(result *resource.Result, take func(*unstructured.Unstructured) error) error {
	infos, err := result.Infos()
	if err != nil {
		return err
	}
	for _, info := range infos {
		err := errors.New("it is not an object")
		if u, ok := info.Object.(runtime.Unstructured); ok {
			if object, ok := u.(*unstructured.Unstructured); ok {
				err = take(object)
			}
		}
		if err == nil {
			continue
		}
		source := ""
		if info.Source != "" {
			source = info.Source + ": "
		}
		name := info.Name
		if info.Namespace != "" {
			name = info.Namespace + "/" + name
		}
		return fmt.Errorf("%s%s %s: %w", source, info.Object.GetObjectKind().GroupVersionKind().Kind, name, err)
	}
	return nil
}
