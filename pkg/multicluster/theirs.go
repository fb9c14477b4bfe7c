package multicluster

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Theirs is what a cluster that carries out an export itself says of the import.
type Theirs struct {
	// Import is nil if it has none.
	Import *mcs.ServiceImport
	// Known says that Import is what the cluster has. Otherwise Problem is why that is not known, "" while it is about to be.
	Known   bool
	Problem string
}

// mostImportPorts bounds what counts of the ports that a cluster says a ServiceImport has.
const mostImportPorts = 256

// TrimImport keeps of a ServiceImport in a cluster what is looked at: everything else is the cluster's own.
func TrimImport(in *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetNamespace(in.GetNamespace())
	out.SetName(in.GetName())
	out.SetUID(in.GetUID())
	out.SetResourceVersion(in.GetResourceVersion())
	spec, _ := in.Object["spec"].(map[string]any)
	kept := map[string]any{}
	for _, field := range []string{"type", "ips", "ports"} {
		if value, said := spec[field]; said {
			kept[field] = value
		}
	}
	out.Object["spec"] = kept
	return out
}

// ReadImport returns what a cluster says of a ServiceImport, which may be anything.
func ReadImport(in *unstructured.Unstructured) Theirs {
	out := &mcs.ServiceImport{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object, out); err != nil || len(out.Spec.Ports) > mostImportPorts {
		return Theirs{Problem: "its ServiceImport cannot be read"}
	}
	return Theirs{Import: out, Known: true}
}

// clusterSetIPs returns the addresses of the Service in the clusters that carry out the export, if all of them that have an import say the same: those are
// addresses for whoever asks in any of them. Of clusters that each have their own there is none that could be told.
func (e Export) clusterSetIPs() (out []string) {
	for _, cluster := range slices.Sorted(maps.Keys(e.Theirs)) {
		of := e.Theirs[cluster].Import
		if of == nil || of.Spec.Type != mcs.ClusterSetIP {
			continue
		}
		says := of.Spec.IPs
		if !slices.Equal(says, usable(says)) || out != nil && !slices.Equal(says, out) {
			return nil
		}
		out = says
	}
	return out
}

// mostIPs is how many addresses a Service may have.
const mostIPs = 2

// usable returns those of the addresses that a Service can have, as they are printed.
func usable(ips []string) (out []string) {
	for _, ip := range ips {
		address, err := netip.ParseAddr(ip)
		if err == nil && address.IsGlobalUnicast() && !address.Is4In6() && address.Zone() == "" && address.String() == ip && len(out) < mostIPs {
			out = append(out, ip)
		}
	}
	return out
}

// awaits says which of the clusters that carry out the export do not import the Service as it is, "" if all do.
func (e Export) awaits() string {
	wanted := Import(&mcs.ServiceExport{}, e.Service)
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(e.Theirs)) {
		if lacks := e.Theirs[cluster].lacks(wanted); lacks != "" {
			out = append(out, fmt.Sprintf("cluster %q: %s", cluster, lacks))
		}
	}
	if rest := len(out) - mostNamed; rest > 0 {
		out = append(out[:mostNamed], fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(out, "; ")
}

// lacks says what of an import a cluster does not have as it is wanted, "" if it has.
func (t Theirs) lacks(wanted *mcs.ServiceImport) string {
	switch {
	case t.Problem != "":
		return t.Problem
	case !t.Known:
		return "its ServiceImport has not been seen yet"
	case t.Import == nil:
		return "its implementation of the API has made no ServiceImport yet"
	case t.Import.Spec.Type != wanted.Spec.Type:
		return fmt.Sprintf("its ServiceImport is not of type %s, as the Service is", wanted.Spec.Type)
	}
	for _, port := range wanted.Spec.Ports {
		same := func(other mcs.ServicePort) bool {
			return other.Name == port.Name && other.Port == port.Port && protocol(other) == protocol(port)
		}
		if !slices.ContainsFunc(t.Import.Spec.Ports, same) {
			return fmt.Sprintf("its ServiceImport has no port %d/%s, which the Service has", port.Port, protocol(port))
		}
	}
	return ""
}

func protocol(of mcs.ServicePort) string {
	if of.Protocol == "" {
		return "TCP"
	}
	return string(of.Protocol)
}
