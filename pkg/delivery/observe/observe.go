// Package observe says what is seen of an application in its clusters, by the objects of the logical cluster alone: what was applied there, where it
// is placed, and what clusters report of it.
package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Present is an object of the logical cluster that belongs to an application.
type Present struct {
	wanted.Key
	Object metav1.Object
	// Workload says that it ends in pods.
	Workload bool
	// Custom says that it is of a custom kind, and Awaited that it is to go to clusters, and nothing is decided about it yet.
	Custom, Awaited bool
}

// World is what is known of an application.
type World struct {
	// Set is what it is to run, Edits the counts of its edits for each cluster, and Wanted what it stands for.
	Set    delivery.Set
	Edits  map[string]int64
	Wanted wanted.Wanted
	// Pinned says that the targets say where it runs. Otherwise placement does, and a cluster without a share has nothing to prove.
	Pinned  bool
	Present []Present
	// Clusters are those that have joined.
	Clusters []*manifold.Cluster
	// Failures say why objects were refused that are wanted as they are now.
	Failures map[wanted.Key]string
	// Broken says why the set stands for nothing, and Missing that something of it is not there yet.
	Broken  string
	Missing bool
	// Routing says how a cluster shares out requests; nil for an application whose requests nobody shares out.
	Routing func(cluster string) Routing
	// Silent says since when a cluster has not answered; zero if it does.
	Silent func(*manifold.Cluster) time.Time
	Now    time.Time
}

// Routing is what is known of how a cluster shares out requests over variants.
type Routing struct {
	// InForce says that it does as the set says, or that it has nothing that could do otherwise.
	InForce bool
	// Problem says why it cannot, "" if it can, and Waits what keeps it from doing so yet, as far as that is known.
	Problem, Waits string
}

// unknownWeight is a share that no variant is ever to have.
const unknownWeight = -1

// Clusters returns what is seen of each cluster.
func Clusters(w World) map[string]delivery.Cluster {
	l := newLook(w)
	out := make(map[string]delivery.Cluster, len(w.Clusters))
	for _, cluster := range w.Clusters {
		out[cluster.Name] = l.cluster(cluster)
	}
	return out
}

// look is the world by what is asked of it.
type look struct {
	World
	present map[wanted.Key]state
	wants   map[wanted.Key]bool
	// stale are the objects that are not yet what was asked for.
	stale []wanted.Object
}

// state is what an object says of its clusters.
type state struct {
	Present
	variant  string
	decision placement.Decision
	reported summary.Breakdown
	// copies are what is reported of an object of a custom kind.
	copies summary.CustomBreakdown
}

func newLook(w World) *look {
	l := &look{World: w, present: map[wanted.Key]state{}, wants: map[wanted.Key]bool{}}
	for _, p := range w.Present {
		s := state{Present: p, variant: p.Object.GetAnnotations()[v1alpha1.AnnotationVariant]}
		// What cannot be read says nothing, and nothing proves nothing.
		s.decision, _ = placement.ParseDecision(p.Object.GetAnnotations()[manifold.AnnotationPlacement])
		if told := p.Object.GetAnnotations()[manifold.AnnotationStatus]; p.Custom {
			s.copies, _ = summary.ParseCustomBreakdown(told)
		} else {
			s.reported, _ = summary.ParseBreakdown(told)
		}
		l.present[p.Key] = s
	}
	for _, object := range w.Wanted.Objects {
		l.wants[object.Key] = true
		if p, there := l.present[object.Key]; !there || !object.Applied(p.Object) {
			l.stale = append(l.stale, object)
		}
	}
	return l
}

func (l *look) cluster(c *manifold.Cluster) delivery.Cluster {
	out := delivery.Cluster{Labels: c.Labels, Heard: l.Now, Wanted: l.replicas(c.Name), Variants: map[string]delivery.Report{}}
	out.Edit, out.Unapplied = l.edit(c.Name)
	if since := l.Silent(c); !since.IsZero() {
		out.Heard = since
	}
	if l.Routing != nil {
		routing := l.Routing(c.Name)
		out.Behind, out.Unroutable, out.Unrouted = l.Wanted.Fronts[c.Name].Leads, routing.Problem, routing.Waits
	}
	names := l.Set.Names()
	for _, s := range l.present {
		if s.variant != "" && !slices.Contains(names, s.variant) {
			names = append(names, s.variant)
		}
	}
	for _, name := range names {
		if report, there := l.variant(name, c.Name); there {
			out.Variants[name] = report
		}
	}
	return out
}

// many is how many objects take so long to be applied that it is worth telling how many have been.
const many = 100

// edit is the edit of the set that reports of a cluster are about: the last one, once the objects are what it asks for. Until then it says how many are.
func (l *look) edit(cluster string) (edit int64, unapplied string) {
	edit = l.Edits[cluster]
	if l.Missing {
		return edit - 1, ""
	}
	stale := 0
	for _, object := range l.stale {
		_, concerns := object.Clusters[cluster]
		if _, refused := l.Failures[object.Key]; refused {
			continue // that is what there is to say about it
		}
		if concerns || l.has(object.Key, cluster) {
			stale++
		}
	}
	all := len(l.Wanted.Objects)
	switch {
	case stale == 0:
		return edit, ""
	case all < many:
		return edit - 1, ""
	}
	return edit - 1, fmt.Sprintf("%d of %d objects are applied", all-len(l.stale), all)
}

// has reports whether a cluster has, or may have, anything of an object.
func (l *look) has(key wanted.Key, cluster string) bool {
	s := l.present[key]
	_, decided := s.decision[cluster]
	_, reported := s.reported[cluster]
	_, copied := s.copies[cluster]
	return decided || reported || copied
}

// replicas are those that the primary has in a cluster, or would have.
func (l *look) replicas(cluster string) map[string]int32 {
	out := maps.Clone(l.Wanted.Replicas[cluster])
	for _, object := range l.Wanted.Objects {
		if _, counts := out[object.Key.String()]; !counts || object.Variant != delivery.Primary {
			continue
		}
		if share, placed := l.present[object.Key].decision[cluster]; placed {
			out[object.Key.String()] = share.Replicas
		}
	}
	return out
}

// variant is what a cluster reports of a variant, false if there is nothing of it.
func (l *look) variant(name, cluster string) (delivery.Report, bool) {
	part, wants := l.Set.Part(name, cluster)
	if !wants {
		return delivery.Report{}, l.lingers(name, cluster)
	}
	sum := delivery.Report{Fingerprint: part.Fingerprint(), Current: true, Ready: true, Weight: part.Traffic, Failure: l.Broken}
	if l.Routing != nil && !l.Routing(cluster).InForce {
		sum.Weight = unknownWeight
	}
	for _, object := range l.Wanted.Objects {
		share, concerns := object.Clusters[cluster]
		if object.Variant != name || !concerns {
			continue
		}
		if why, refused := l.Failures[object.Key]; refused {
			sum.Failure = why
		}
		if object.Workload {
			l.workload(&sum, object, share, cluster)
		} else if s := l.present[object.Key]; s.Custom {
			copied(&sum, s, share, cluster)
		}
	}
	return sum, true
}

// lingers reports whether anything of a variant is left in a cluster that is to have none of it.
func (l *look) lingers(name, cluster string) bool {
	for key, s := range l.present {
		if s.variant == name && s.Workload && l.has(key, cluster) {
			return true
		}
	}
	return false
}

// lack is how an object falls short of what is wanted of it in a cluster.
type lack int

const (
	// unapplied says that nothing proves that the cluster has it as it is wanted, and unready that the cluster has it, and it is not ready.
	unapplied lack = iota
	unready
)

// lacks notes in what is reported of a variant that one of its objects falls short, and how.
func lacks(sum *delivery.Report, key wanted.Key, how lack, format string, args ...any) {
	if how == unapplied {
		sum.Fingerprint, sum.Current = "", false
	}
	sum.Ready = false
	if sum.Waiting == "" {
		sum.Waiting = fmt.Sprintf("%s: ", key) + fmt.Sprintf(format, args...)
	}
}

// copied adds what a cluster reports of an object of a custom kind to what it reports of the variant. One that stays in the logical cluster, or is elsewhere,
// it says nothing of.
func copied(sum *delivery.Report, s state, share copies.Share, cluster string) {
	if s.Awaited {
		lacks(sum, s.Key, unapplied, "nothing is decided yet about where it goes")
		return
	}
	if _, placed := s.decision[cluster]; !placed {
		return
	}
	reported, heard := s.copies[cluster]
	current := reported.Content == (identity.Revision{Name: share.Revision, Target: share.Target}).String()
	if current {
		sum.Progress++
	}
	switch {
	case !heard || reported.Stale:
		lacks(sum, s.Key, unapplied, "nothing is reported of it")
	case reported.Problem != "":
		lacks(sum, s.Key, unapplied, "%s", delivery.Said(reported.Problem))
	case !current:
		lacks(sum, s.Key, unapplied, "the cluster has not taken it up yet")
	case reported.Unready:
		lacks(sum, s.Key, unready, "%s", orElse(reported.State, "it is not ready"))
	}
}

// wantsPods reports whether a cluster is to have pods of a workload, as far as its share and the manifests of its target say.
func wantsPods(object wanted.Object, share copies.Share, cluster string) bool {
	if n, own := object.Portions[cluster]; own && n <= 0 {
		return false
	}
	return share.Replicas == nil || *share.Replicas > 0
}

// workload adds what a cluster reports of one workload to what it reports of the variant.
func (l *look) workload(sum *delivery.Report, object wanted.Object, share copies.Share, cluster string) {
	not := func(how lack, format string, args ...any) { lacks(sum, object.Key, how, format, args...) }
	s, there := l.present[object.Key]
	if !there {
		not(unapplied, "it is not there yet")
		return
	}
	part, placed := s.decision[cluster]
	if !placed {
		if l.Pinned && wantsPods(object, share, cluster) {
			not(unapplied, "it has no place in the cluster")
		}
		return // placement has it elsewhere
	}
	if share.Replicas != nil && part.Replicas != *share.Replicas {
		not(unapplied, "placement gives it %d pods, and %d are wanted", part.Replicas, *share.Replicas)
		return
	}
	reported, heard := s.reported[cluster]
	sum.Progress += int64(reported.Updated) + int64(reported.Ready)
	if !reported.Stale { // what a silent cluster said last serves nobody
		sum.Pods += reported.Ready
		if l.behind(object, cluster) {
			sum.Endpoints += max(0, reported.Ready-reported.Unproxied)
		}
	}
	switch why := why(reported); {
	case !heard || reported.Stale:
		not(unapplied, "nothing is reported of it")
	case object.Held && (reported.Revision != share.Revision || reported.Target != share.Target):
		not(unapplied, "%s", orElse(why, "the cluster has not taken it up yet"))
	case !object.Held && reported.Generation < s.Object.GetGeneration():
		not(unapplied, "%s", orElse(why, "the cluster has not taken it up yet"))
	case object.Held && reported.Lacks != "":
		not(unapplied, "%s", delivery.Said(reported.Lacks))
	default:
		if missing := Missing(object.Kind, part, reported); missing != "" {
			not(unready, "%s", orElse(why, missing))
		}
	}
}

// behind reports whether requests to the application get to a workload. Where nobody shares them out, that is not asked.
func (l *look) behind(object wanted.Object, cluster string) bool {
	if l.Routing == nil {
		return true
	}
	name := strings.TrimSuffix(object.Key.String(), "-"+l.Set[object.Variant].Suffix) // the primary has no suffix, and no name ends in a hyphen
	return slices.Contains(l.Wanted.Fronts[cluster].Leads, name)
}

func orElse(said, otherwise string) string {
	if said == "" {
		return otherwise
	}
	return delivery.Said(said)
}

// why is what a cluster says of what it cannot do.
func why(reported summary.ClusterStatus) string {
	if reported.Problem != "" {
		return reported.Problem
	}
	return reported.Waits
}

// Missing says what a workload of a kind lacks in a cluster, by what that reports of it as it is now; "" if nothing.
func Missing(kind string, part placement.Share, reported summary.ClusterStatus) string {
	switch kind {
	case "Job":
		if reported.Ended == "Complete" {
			return ""
		}
		return orElse(reported.Ended, "it has not completed")
	case "DaemonSet":
		if reported.Updated == reported.Replicas && reported.Available >= reported.Replicas {
			return ""
		}
		return fmt.Sprintf("%d of %d pods are updated, and %d available", reported.Updated, reported.Replicas, reported.Available)
	case "Deployment", "StatefulSet":
		if want := part.Replicas; reported.Replicas != want || reported.Updated != want || reported.Available < want {
			return fmt.Sprintf("%d of %d pods are updated, and %d available", reported.Updated, want, reported.Available)
		}
		return ""
	}
	if want := part.Replicas; reported.Ready < want {
		return fmt.Sprintf("%d of %d pods are ready", reported.Ready, want)
	}
	return ""
}
