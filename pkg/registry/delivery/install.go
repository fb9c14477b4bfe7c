package delivery

import (
	"net/url"
	"strconv"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/workloads"
)

// Install registers the kinds of the group for a server, and how the options of requests are read from their query.
func Install(scheme *runtime.Scheme) error {
	if err := v1alpha1.Install(scheme); err != nil {
		return err
	}
	if err := scheme.AddFieldLabelConversionFunc(v1alpha1.SchemeGroupVersion.WithKind("WorkloadVersion"), workloads.Selectable); err != nil {
		return err
	}
	return scheme.AddConversionFunc((*url.Values)(nil), (*v1alpha1.ReleaseLogOptions)(nil), func(from, into any, _ conversion.Scope) error {
		query, options := *from.(*url.Values), into.(*v1alpha1.ReleaseLogOptions)
		options.Stage, options.Target = query.Get("stage"), query.Get("target")
		var err error
		if follow := query.Get("follow"); follow != "" {
			options.Follow, err = strconv.ParseBool(follow)
		}
		return err
	})
}
