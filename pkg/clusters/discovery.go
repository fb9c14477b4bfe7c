package clusters

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/placement"
)

const (
	// mostKinds bounds what is told of the kinds that a cluster serves. Large installations have some hundreds.
	mostKinds = 5000
	// longestName bounds the names of kinds and versions. A kind has 63 characters, as its version, and its group 253.
	longestName = 400
)

// discover asks a cluster for its version and the kinds that it serves. An aggregated API that is down fails only its own group, of
// which the kinds known before are kept.
func discover(client discovery.DiscoveryInterface, last []string) (version string, kinds []string, err error) {
	info, err := client.ServerVersion()
	if err != nil {
		return "", nil, fmt.Errorf("read the version: %w", err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return "", nil, fmt.Errorf("read the served kinds: %w", err)
	}
	var failed []schema.GroupVersion
	if partial != nil {
		for version := range partial.Groups {
			failed = append(failed, version)
		}
	}
	kinds = servedKinds(lists, failed, last)
	if len(kinds) > mostKinds {
		return "", nil, &bounds.ExceededError{What: fmt.Sprintf("the cluster serves %d kinds, more than %d", len(kinds), mostKinds), Do: "remove definitions of custom resources that nobody needs"}
	}
	return text.Line(info.GitVersion, longestName), kinds, nil
}

// servedKinds returns the names of the kinds in the lists, sorted, and those of last that belong to the groups that failed.
func servedKinds(lists []*metav1.APIResourceList, failed []schema.GroupVersion, last []string) []string {
	kinds := []string{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			name := placement.KindName(version.WithKind(resource.Kind))
			if !strings.Contains(resource.Name, "/") && text.Line(name, longestName) == name {
				kinds = append(kinds, name)
			}
		}
	}
	for _, version := range failed {
		suffix := placement.KindName(version.WithKind(""))
		for _, name := range last {
			if kind, ok := strings.CutSuffix(name, suffix); ok && !strings.Contains(kind, ".") {
				kinds = append(kinds, name)
			}
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
