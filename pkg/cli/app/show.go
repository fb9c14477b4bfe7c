package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/app/words"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

const (
	// longest bounds what a message takes of the screen, and longestCell what it takes of a column that others follow.
	longest     = 512
	longestCell = 72
	// nothing stands in a column that has no value.
	nothing = output.Nothing
)

// show returns what there is to see of an application, line by line. Wanted is where the revision comes from that it is to run, nil if that is not
// known.
func show(application *v1alpha1.Application, wanted *v1alpha1.Origin, now time.Time) []string {
	lines := header(application, wanted, now)
	if wrong := problems(application); len(wrong) > 0 {
		lines = append(append(lines, ""), wrong...)
	}
	if variants := variantRows(&application.Status); len(variants) > 0 {
		lines = append(append(lines, ""), output.Filled(append([][]string{{"VARIANT", "REVISION", "READY", "TRAFFIC", "CLUSTERS"}}, variants...))...)
	}
	if targets := targetRows(application.Status.Targets); len(targets) > 0 {
		lines = append(append(lines, ""),
			output.Filled(append([][]string{{"TARGET", "CLUSTER", "REVISION", "LIVE", "READY", "SYNC", "HEALTH", "MESSAGE"}}, targets...))...)
	}
	if plugins := pluginRows(application); len(plugins) > 0 {
		lines = append(append(lines, ""), output.Filled(append([][]string{{"PLUGIN", "DEPLOY TARGET", "RESOURCES", "SYNC", "HEALTH", "MESSAGE"}}, plugins...))...)
	}
	if differences := differenceRows(application.Status.Plugins); len(differences) > 0 {
		lines = append(append(lines, ""), output.Filled(append([][]string{{"PLUGIN", "DEPLOY TARGET", "DIFFERS", "RESOURCE"}}, differences...))...)
	}
	if drift := driftRows(&application.Status); len(drift) > 0 {
		lines = append(append(lines, ""), output.Filled(append([][]string{{"DRIFT", "PATH", "WANTED", "FOUND", "CLUSTERS"}}, drift...))...)
		if more := int(application.Status.DriftCount) - len(drift); more > 0 {
			lines = append(lines, fmt.Sprintf("... and %d more", more))
		}
	}
	return lines
}

// pluginRows has a row for each deploy target of a plugin, and one for a plugin that tells nothing of any.
func pluginRows(application *v1alpha1.Application) (rows [][]string) {
	for i := range application.Status.Plugins {
		of := &application.Status.Plugins[i]
		rows = append(rows, []string{
			text.Line(of.Plugin, longestCell), text.Line(of.DeployTarget, longestCell), fmt.Sprint(of.ResourceCount), string(of.Sync), string(of.Health), text.Line(of.Message, longest),
		})
	}
	for _, name := range silent(application) {
		rows = append(rows, []string{text.Line(name, longestCell), "", "", "", "", silence})
	}
	return rows
}

func header(application *v1alpha1.Application, wanted *v1alpha1.Origin, now time.Time) []string {
	spec, status := &application.Spec, &application.Status
	rows := [][]string{
		{"Application:", application.Namespace + "/" + application.Name},
		{"Source:", text.Line(source(&spec.Source), longest)},
	}
	rows = append(rows, commits(status, wanted, now)...)
	rows = append(rows, []string{"Revision:", words.Revisions(status)})
	if status.Release != "" {
		rows = append(rows, []string{"Release:", status.Release + " " + string(cmp.Or(status.ReleasePhase, v1alpha1.ReleasePending))})
	}
	rows = append(rows, []string{"Sync:", string(cmp.Or(status.Sync, v1alpha1.SyncUnknown))},
		[]string{"Health:", string(cmp.Or(status.Health, v1alpha1.HealthUnknown))})
	if spec.Traffic != nil {
		rows = append(rows, []string{"Traffic:", sharing(application.Name, spec.Traffic)})
	}
	if spec.Revision != "" {
		rows = append(rows, []string{"Pinned:", "to " + spec.Revision})
	}
	if spec.Suspend {
		rows = append(rows, []string{"Suspended:", "nothing is released or healed until spec.suspend is unset"})
	}
	return output.Filled(rows)
}

// sharing says by what requests are shared out.
func sharing(application string, of *v1alpha1.Traffic) string {
	out := string(of.Method)
	switch {
	case of.Name != "":
		out += " " + of.Name
	case of.Makes():
		out += fmt.Sprintf(" %s, made for %s", application, of.Host)
	case of.Finds():
		out += " among the manifests"
	case of.Lost():
		return out + " for " + of.Host + ", not made: spec.traffic.gateways names none that it would belong to"
	}
	switch {
	case of.NginxCanary:
		out += ", with weights of nginx"
	case of.Method == v1alpha1.TrafficIngress:
		out += ", with a path for each copy"
	}
	return text.Line(out, longest)
}

// commits are that of the revision which is wanted, and the newest if that is another one.
func commits(status *v1alpha1.ApplicationStatus, wanted *v1alpha1.Origin, now time.Time) [][]string {
	var newest *v1alpha1.Origin
	if status.Source != nil {
		newest = status.Source.Origin
	}
	switch {
	case newest == nil && wanted == nil:
		return nil
	case newest == nil || wanted == nil || newest.Commit == wanted.Commit:
		return [][]string{{"Commit:", commit(cmp.Or(wanted, newest), now)}}
	}
	return [][]string{{"Commit:", commit(wanted, now)}, {"Newest:", commit(newest, now)}}
}

// source says where the manifests come from.
func source(from *v1alpha1.Source) string {
	switch {
	case from.Git != nil:
		where := strings.TrimSuffix(from.Git.URL+"/"+from.Git.Path, "/")
		if ref := ptr.Deref(from.Git.Ref, v1alpha1.GitRef{}); ref != (v1alpha1.GitRef{}) {
			where += " at " + cmp.Or(ref.Commit, ref.Tag, ref.Semver, ref.Branch)
		}
		return where
	case from.Selector != nil:
		return "objects of the namespace that match " + cmp.Or(metav1.FormatLabelSelector(&from.Selector.LabelSelector), "everything")
	case from.Inline != nil:
		return fmt.Sprintf("%d objects in the application itself", len(from.Inline.Objects))
	}
	return nothing
}

// shortCommit is how many digits of a commit tell it from others.
const shortCommit = 12

func commit(origin *v1alpha1.Origin, now time.Time) string {
	out := cmp.Or(text.Line(origin.Commit[:min(len(origin.Commit), shortCommit)], longest), nothing)
	if origin.Author != "" {
		out += " by " + text.FirstLine(origin.Author, longestCell)
	}
	if origin.Time != nil {
		out += " " + duration.HumanDuration(max(now.Sub(origin.Time.Time), 0)) + " ago"
	}
	if message := text.FirstLine(origin.Message, longest); message != "" {
		out += ": " + message
	}
	return out
}

// problems are the conditions that are not fine, and what nobody has looked at yet.
func problems(application *v1alpha1.Application) []string {
	var out []string
	if application.Status.ObservedGeneration < application.Generation {
		out = append(out, "What was changed last has not been looked at yet.")
	}
	for _, c := range application.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			continue
		}
		out = append(out, words.Condition(c))
	}
	return out
}

// variantRows are the variants, if the application is not all that there is.
func variantRows(status *v1alpha1.ApplicationStatus) [][]string {
	if len(status.Variants) < 2 {
		return nil
	}
	var rows [][]string
	for i := range status.Variants {
		v := &status.Variants[i]
		var clusters []string
		differs := slices.ContainsFunc(v.Clusters, func(c v1alpha1.VariantCluster) bool {
			return ptr.Deref(c.Traffic, 0) != ptr.Deref(v.Clusters[0].Traffic, 0)
		})
		for j := range v.Clusters {
			name := v.Clusters[j].Cluster
			if share := v.Clusters[j].Traffic; share != nil && (differs || v.Traffic != nil && *share != *v.Traffic) {
				name += fmt.Sprintf(":%d%%", *share)
			}
			clusters = append(clusters, name)
		}
		ready, of := words.Pods(status, v)
		traffic := nothing
		if v.Traffic != nil {
			traffic = fmt.Sprintf("%d%%", *v.Traffic)
		}
		rows = append(rows, []string{v.Name, v.Revision, pods(ready, of), traffic, text.Line(strings.Join(clusters, ","), longest)})
	}
	return rows
}

func pods(ready, of int32) string {
	if of == 0 {
		return nothing
	}
	return fmt.Sprintf("%d/%d", ready, of)
}

// driftRows are the fields that are not what was released, with the clusters that this reaches.
func driftRows(status *v1alpha1.ApplicationStatus) [][]string {
	var rows [][]string
	for _, d := range status.Drift {
		path, found := text.Line(d.Path, longest), text.Line(d.Found, longestCell)
		if d.Path == "" {
			path, found = "", "not there"
		}
		reaches := text.Line(strings.Join(d.Clusters, ","), longestCell)
		if reaches == "" {
			reaches = "(logical cluster alone)"
		}
		rows = append(rows, []string{d.Kind + "/" + d.Name, path, text.Line(d.Wanted, longestCell), found, reaches})
	}
	return rows
}

// targetRows are a row for each cluster of each target, and one for a target of which no cluster is known.
func targetRows(targets []v1alpha1.TargetStatus) [][]string {
	var rows [][]string
	for i := range targets {
		t := &targets[i]
		if len(t.Clusters) == 0 {
			rows = append(rows, []string{t.Name, "", t.Revision, t.LiveRevision, "", string(t.Sync), string(t.Health), text.Line(t.Message, longest)})
		}
		for j := range t.Clusters {
			c := &t.Clusters[j]
			rows = append(rows, []string{t.Name, c.Name, c.Revision, c.LiveRevision, pods(c.Ready, c.Replicas), string(cmp.Or(c.Sync, v1alpha1.SyncUnknown)),
				string(cmp.Or(c.Health, v1alpha1.HealthUnknown)), text.Line(c.Message, longest)})
		}
	}
	return rows
}
