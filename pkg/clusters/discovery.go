package clusters

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/manifold-dev/manifold/pkg/placement"
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
	return info.GitVersion, servedKinds(lists, failed, last), nil
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
			if !strings.Contains(resource.Name, "/") {
				kinds = append(kinds, placement.KindName(version.WithKind(resource.Kind)))
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
