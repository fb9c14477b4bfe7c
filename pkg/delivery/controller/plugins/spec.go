package plugins

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
)

// specOf is what the host is to run of a Plugin. The clusters are all that have joined.
func specOf(plugin *v1alpha1.Plugin, clusters []*manifold.Cluster) host.Spec {
	of := plugin.Spec.DeepCopy()
	v1alpha1.SetDefaults_PluginSpec(of)
	v1alpha1.SetDefaults_PluginLimits(&of.Limits)
	out := host.Spec{
		Generation: plugin.Generation, URL: of.URL, Sha256: of.Sha256, Config: raw(of.Config), Port: of.Port, LogLevel: string(of.LogLevel),
		Grace: time.Duration(*of.GracePeriodSeconds) * time.Second, Suspend: of.Suspend,
		RestartFor: plugin.Annotations[v1alpha1.AnnotationRestartAt], RefetchFor: plugin.Annotations[v1alpha1.AnnotationRefetchAt],
	}
	out.Limits.Memory = uint64(of.Limits.Memory.Value())
	out.Limits.Files, out.Limits.Processes = uint64(*of.Limits.Files), uint64(*of.Limits.Processes)
	var err error
	if out.Targets, err = targetsOf(of.DeployTargets, clusters); err != nil {
		out.Problem = err.Error()
	}
	return out
}

// seenOf is what is known of a Plugin from before this server was started.
func seenOf(plugin *v1alpha1.Plugin) host.Seen {
	of := &plugin.Status
	return host.Seen{Incarnation: of.Incarnation, Restarts: of.Restarts, Stages: slices.Clone(of.Stages), RefetchedFor: of.RefetchedFor}
}

// targetsOf are the deploy targets that are meant, those that stand for clusters among them.
func targetsOf(said []v1alpha1.PluginTarget, clusters []*manifold.Cluster) ([]plugins.Target, error) {
	clusters = slices.SortedFunc(slices.Values(clusters), func(a, b *manifold.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	var out []plugins.Target
	from := map[string]string{} // targets by name, with the field that has made them
	add := func(name, field string, of v1alpha1.PluginTarget) error {
		if other, twice := from[name]; twice {
			return fmt.Errorf("%s makes a target named %q, and so does %s", field, name, other)
		}
		from[name] = field
		out = append(out, plugins.Target{Name: name, Labels: of.Labels, Config: raw(of.Config)})
		return nil
	}
	for i, of := range said {
		field := fmt.Sprintf("spec.deployTargets[%d]", i)
		if of.ClusterSelector == nil {
			if err := add(of.Name, field, of); err != nil {
				return nil, err
			}
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(of.ClusterSelector)
		if err != nil {
			return nil, fmt.Errorf("%s.clusterSelector: %w", field, err)
		}
		for _, cluster := range clusters {
			if cluster.DeletionTimestamp != nil || !selector.Matches(labels.Set(cluster.Labels)) {
				continue
			}
			if err := add(cluster.Name, field, of); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func raw(of *runtime.RawExtension) json.RawMessage {
	if of == nil || strings.TrimSpace(string(of.Raw)) == "" {
		return nil
	}
	return json.RawMessage(of.Raw)
}
