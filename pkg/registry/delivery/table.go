package delivery

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/registry/table"
)

func applicationColumns() rest.TableConvertor {
	return table.New(append([]table.Column[*v1alpha1.Application]{
		table.Text("Revision", "The revision that the application is to run.", func(a *v1alpha1.Application) string {
			return cmp.Or(a.Status.WantedRevision, table.None)
		}),
		table.Text("Sync", "Whether all targets have what was released.", func(a *v1alpha1.Application) string {
			return cmp.Or(string(a.Status.Sync), string(v1alpha1.SyncUnknown))
		}),
		table.Text("Health", "The worst of all targets that are known.", func(a *v1alpha1.Application) string {
			return cmp.Or(string(a.Status.Health), string(v1alpha1.HealthUnknown))
		}),
		table.Text("Release", "The release that runs, or the last one, and how far it is.", released),
		table.Age[*v1alpha1.Application](),
		table.Text("Message", "What is wrong, as the first of its conditions says that is not True.", wrong),
	}, table.WhenWide(
		table.Text("Live", "The revision that was last released with success.", func(a *v1alpha1.Application) string {
			return cmp.Or(a.Status.LiveRevision, table.None)
		}),
		table.Text("Targets", "The targets that are as they should be, of all.", targets),
		table.Text("Source", "Where the manifests come from.", func(a *v1alpha1.Application) string { return source(&a.Spec.Source) }),
		table.Text("Suspended", "Whether automation stands still.", func(a *v1alpha1.Application) string { return yesOrNo(a.Spec.Suspend) }),
	)...)...)
}

// longestMessage bounds what a condition takes of a row.
const longestMessage = 100

// wrong is what keeps an application from what it says. That its clusters are not in sync has a column of its own.
func wrong(application *v1alpha1.Application) string {
	for _, kind := range []string{
		v1alpha1.ApplicationSourceReady, v1alpha1.ApplicationRendered, v1alpha1.ApplicationReleased, v1alpha1.ApplicationHonoured, v1alpha1.ApplicationNotified,
	} {
		if c := meta.FindStatusCondition(application.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			return text.Line(c.Message, longestMessage)
		}
	}
	return ""
}

func released(application *v1alpha1.Application) string {
	if application.Status.Release == "" {
		return table.None
	}
	return application.Status.Release + " " + cmp.Or(string(application.Status.ReleasePhase), string(v1alpha1.ReleasePending))
}

func targets(application *v1alpha1.Application) string {
	good := 0
	for i := range application.Status.Targets {
		if target := &application.Status.Targets[i]; target.Sync == v1alpha1.Synced && target.Health == v1alpha1.Healthy {
			good++
		}
	}
	return fmt.Sprintf("%d/%d", good, len(application.Status.Targets))
}

func source(from *v1alpha1.Source) string {
	switch {
	case from.Git != nil:
		return strings.TrimSuffix(from.Git.URL+"/"+from.Git.Path, "/")
	case from.Selector != nil:
		return "<selector>"
	case from.Inline != nil:
		return "<inline>"
	}
	return table.None
}

func yesOrNo(yes bool) string {
	if yes {
		return "True"
	}
	return "False"
}

func revisionColumns() rest.TableConvertor {
	return table.New(append([]table.Column[*v1alpha1.ApplicationRevision]{
		table.Text("Application", "The application that it is a revision of.", func(r *v1alpha1.ApplicationRevision) string { return r.Spec.Application }),
		table.Number("Number", "The position among the application's revisions.", func(r *v1alpha1.ApplicationRevision) int64 { return r.Spec.Number }),
		table.Text("Images", "The images of its workloads.", images),
		table.Text("Commit", "The commit that it was made from.", func(r *v1alpha1.ApplicationRevision) string {
			commit := origin(r).Commit
			return cmp.Or(commit[:min(len(commit), 12)], table.None)
		}),
		table.Age[*v1alpha1.ApplicationRevision](),
	}, table.WhenWide(
		table.Text("Author", "Who made the commit.", func(r *v1alpha1.ApplicationRevision) string { return cmp.Or(origin(r).Author, table.None) }),
		table.Text("Message", "The first line of what the author wrote.", func(r *v1alpha1.ApplicationRevision) string {
			line, _, _ := strings.Cut(origin(r).Message, "\n")
			return cmp.Or(line, table.None)
		}),
		table.Number("Warnings", "What the renderer found odd.", func(r *v1alpha1.ApplicationRevision) int64 { return int64(len(r.Spec.Warnings)) }),
	)...)...)
}

func origin(revision *v1alpha1.ApplicationRevision) *v1alpha1.Origin {
	return cmp.Or(revision.Spec.Origin, &v1alpha1.Origin{})
}

func images(revision *v1alpha1.ApplicationRevision) string {
	if revision.IsChunk() {
		return "<part of " + revision.Spec.ChunkOf + ">"
	}
	var written []string
	for _, image := range revision.Spec.Images {
		text := image.Name
		if image.Tag != "" {
			text += ":" + image.Tag
		}
		if image.Tag == "" && image.Digest != "" {
			text += "@" + image.Digest
		}
		written = append(written, text)
	}
	return cmp.Or(strings.Join(written, ","), table.None)
}

func releaseColumns() rest.TableConvertor {
	return table.New(append([]table.Column[*v1alpha1.Release]{
		table.Text("Application", "The application that is released.", func(r *v1alpha1.Release) string { return r.Spec.Application }),
		table.Text("Revision", "The revision that is released.", func(r *v1alpha1.Release) string { return r.Spec.Revision }),
		table.Text("Strategy", "QuickSync goes to all targets at once, Pipeline through its stages.", strategy),
		table.Text("Phase", "How far the release is.", func(r *v1alpha1.Release) string {
			return cmp.Or(string(r.Status.Phase), string(v1alpha1.ReleasePending))
		}),
		table.Text("Stage", "The stage that runs or has failed, and its place among all.", stage),
		table.Age[*v1alpha1.Release](),
	}, table.WhenWide(
		table.Text("By", "Who made the release.", func(r *v1alpha1.Release) string { return cmp.Or(r.Spec.TriggeredBy.User, table.Unknown) }),
		table.Text("Message", "What the release waits for, or how it ended.", func(r *v1alpha1.Release) string { return cmp.Or(r.Status.Message, table.None) }),
	)...)...)
}

func strategy(release *v1alpha1.Release) string {
	if plan := release.Status.Plan; plan != nil {
		return string(plan.Strategy)
	}
	return cmp.Or(string(release.Spec.Strategy), table.Unknown)
}

// stage writes the stage that runs, or else the last one that has begun.
func stage(release *v1alpha1.Release) string {
	stages, last := release.Status.Stages, -1
	for i := range stages {
		switch stages[i].Phase {
		case "", v1alpha1.StageNotStarted, v1alpha1.StageSkipped:
			continue
		}
		last = i
		if stages[i].Phase == v1alpha1.StageRunning {
			break
		}
	}
	if last < 0 {
		return table.None
	}
	return fmt.Sprintf("%d/%d %s", last+1, len(stages), stages[last].Name)
}

func logColumns() rest.TableConvertor {
	return table.New([]table.Column[*v1alpha1.ReleaseLogPart]{
		table.Text("Release", "The release that it is the log of.", func(l *v1alpha1.ReleaseLogPart) string { return l.Spec.Release }),
		table.Number("Part", "Its position among the parts of the log.", func(l *v1alpha1.ReleaseLogPart) int64 { return l.Spec.Number }),
		table.Number("Lines", "How many lines it has.", func(l *v1alpha1.ReleaseLogPart) int64 { return int64(len(l.Spec.Lines)) }),
		table.Age[*v1alpha1.ReleaseLogPart](),
	}...)
}

func recordColumns() rest.TableConvertor {
	return table.New([]table.Column[*v1alpha1.PluginRecord]{
		table.Text("Plugin", "The plugin that keeps it.", func(r *v1alpha1.PluginRecord) string { return r.Spec.Plugin }),
		table.Text("Application", "The Application that it is about.", func(r *v1alpha1.PluginRecord) string { return r.Spec.Application }),
		table.Text("Release", "The Release that it is about.", func(r *v1alpha1.PluginRecord) string { return r.Spec.Release }),
		table.Age[*v1alpha1.PluginRecord](),
	}...)
}
