package plugins

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/targets"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// specOf is what the host is to run of a Plugin, but for its deploy targets.
func specOf(plugin *v1alpha1.Plugin) host.Spec {
	of := plugin.Spec.DeepCopy()
	v1alpha1.SetDefaults_PluginSpec(of)
	v1alpha1.SetDefaults_PluginLimits(&of.Limits)
	out := host.Spec{
		Generation: plugin.Generation, URL: of.URL, Sha256: of.Sha256, Config: raw(of.Config), Port: of.Port, LogLevel: string(of.LogLevel),
		Grace: time.Duration(*of.GracePeriodSeconds) * time.Second, Suspend: of.Suspend, Called: plugin.Called(), InstallTools: of.InstallTools,
		RestartFor: plugin.Annotations[v1alpha1.AnnotationRestartAt], RefetchFor: plugin.Annotations[v1alpha1.AnnotationRefetchAt],
	}
	out.Limits.Memory = uint64(of.Limits.Memory.Value())
	out.Limits.Files, out.Limits.Processes = uint64(*of.Limits.Files), uint64(*of.Limits.Processes)
	return out
}

// seenOf is what is known of a Plugin from before this server was started.
func seenOf(plugin *v1alpha1.Plugin) host.Seen {
	of := &plugin.Status
	return host.Seen{Incarnation: of.Incarnation, Restarts: of.Restarts, Stages: slices.Clone(of.Stages), RefetchedFor: of.RefetchedFor}
}

// meant is a deploy target that is meant.
type meant struct {
	plugins.Target
	// field is the one that it comes from.
	field string
	// cluster is the one that it stands for, nil if it was written down itself, and account by whose rights it is worked in.
	cluster *manifold.Cluster
	account v1alpha1.PluginServiceAccountRef
}

// fieldOf is the path of a deploy target.
func fieldOf(i int) string { return fmt.Sprintf("spec.deployTargets[%d]", i) }

// targetsOf are the deploy targets that are meant, those that stand for clusters among them. The clusters are all that have joined.
func targetsOf(said []v1alpha1.PluginTarget, clusters []*manifold.Cluster) ([]meant, error) {
	clusters = slices.SortedFunc(slices.Values(clusters), func(a, b *manifold.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	var out []meant
	from := map[string]string{} // targets by name, with the field that has made them
	add := func(of meant) error {
		if other, twice := from[of.Name]; twice {
			return fmt.Errorf("%s makes a target named %q, and so does %s", of.field, of.Name, other)
		}
		from[of.Name] = of.field
		out = append(out, of)
		return nil
	}
	for i, of := range said {
		target := meant{Target: plugins.Target{Name: of.Name, Labels: of.Labels, Config: raw(of.Config)}, field: fieldOf(i)}
		if of.ClusterSelector == nil {
			if err := add(target); err != nil {
				return nil, err
			}
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(of.ClusterSelector)
		if err != nil {
			return nil, fmt.Errorf("%s.clusterSelector: %w", target.field, err)
		}
		if of.ServiceAccountRef == nil {
			return nil, fmt.Errorf("%s.serviceAccountRef: say by the rights of which ServiceAccount the plugin works in the clusters", target.field)
		}
		// The controller has no right to tokens of those, and asks for none.
		if why, refused := projection.NamespaceRefusal(of.ServiceAccountRef.Namespace); refused {
			return nil, fmt.Errorf("%s.serviceAccountRef.namespace: %s", target.field, why)
		}
		target.account = *of.ServiceAccountRef
		for _, cluster := range targets.Selected(clusters, selector) {
			target.Name, target.cluster = cluster.Name, cluster
			if err := add(target); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// reachedBy is the configuration of a target that says where its kubeconfig is, and which namespace it works in unless it says another one.
func reachedBy(config json.RawMessage, path, namespace string) (json.RawMessage, error) {
	made, err := targets.Config(path, namespace)
	if err != nil || len(config) == 0 {
		return made, err
	}
	var said, ours map[string]any
	if err := errors.Join(json.Unmarshal(config, &said), json.Unmarshal(made, &ours)); err != nil {
		return nil, err
	}
	if informer, is := said[informerField].(map[string]any); is {
		if _, says := informer["namespace"]; !says {
			informer["namespace"] = namespace
		}
	}
	for key, value := range ours {
		if _, says := said[key]; !says || key == v1alpha1.PluginKubeconfigField {
			said[key] = value
		}
	}
	return json.Marshal(said)
}

// informerField is the field of the configuration of a target that says what its live state is about.
const informerField = "appStateInformer"

func raw(of *runtime.RawExtension) json.RawMessage {
	if of == nil || strings.TrimSpace(string(of.Raw)) == "" {
		return nil
	}
	return json.RawMessage(of.Raw)
}
