package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/app/words"
)

// pluginPart is what a plugin says of one of its deploy targets: what a release would change, or what differs there.
type pluginPart struct {
	Plugin       string `json:"plugin"`
	DeployTarget string `json:"deployTarget,omitempty"`
	// Differs is whether anything would change or differs. It is not known if there is an error, nor where the plugin does not support it.
	Differs bool `json:"differs"`
	// Unsupported says that the plugin does not tell.
	Unsupported bool   `json:"unsupported,omitempty"`
	Summary     string `json:"summary,omitempty"`
	// Error says why it cannot be told.
	Error string `json:"error,omitempty"`
	// Differences are the first resources that differ, and DifferenceCount is the number of all.
	Differences     []v1alpha1.PluginDifference `json:"differences,omitempty"`
	DifferenceCount int32                       `json:"differenceCount,omitempty"`

	line string
}

// plugins adds what plugins say. It is about all of them, so not where somebody asks about single targets.
func (o *PlanOptions) plugins(ctx context.Context, application *v1alpha1.Application, revision string, found *plan) {
	switch {
	case len(o.Targets) > 0 || len(application.Spec.Plugins) == 0:
	case o.drift:
		found.Plugins = drifted(application)
	default:
		preview, err := o.applications().Preview(ctx, o.Name, &v1alpha1.ApplicationPreview{Revision: revision}, metav1.CreateOptions{})
		if err != nil {
			found.PluginsError = text.Line(advised(err, o.Namespace), longest)
			return
		}
		for i := range preview.Previews {
			found.Plugins = append(found.Plugins, previewed(&preview.Previews[i]))
		}
	}
}

// advised is an error of the server with what to do about it.
func advised(err error, namespace string) string {
	if apierrors.IsForbidden(err) {
		return fmt.Sprintf("%v; the right to create applications/preview in namespace %q, which ClusterRole \"edit\" has, lets you ask them", err, namespace)
	}
	return err.Error()
}

func previewed(of *v1alpha1.PluginPreview) pluginPart {
	out := pluginPart{
		Plugin: of.Plugin, DeployTarget: of.DeployTarget, Unsupported: of.Unsupported, Differs: !of.NoChange && !of.Unsupported && !of.Unknown,
		Differences: of.Differences, DifferenceCount: of.DifferenceCount, line: words.Preview(of),
	}
	if out.Summary = of.Summary; of.Unknown {
		out.Summary, out.Error = "", of.Summary
	}
	return out
}

// drifted is what plugins have told of what is there. One that has told nothing does not support that, or was not asked yet.
func drifted(application *v1alpha1.Application) (out []pluginPart) {
	for i := range application.Status.Plugins {
		of := &application.Status.Plugins[i]
		part := pluginPart{
			Plugin: of.Plugin, DeployTarget: of.DeployTarget, Differs: of.Sync == v1alpha1.OutOfSync, Summary: of.Message,
			Differences: of.Differences, DifferenceCount: of.DifferenceCount,
		}
		says := string(of.Sync)
		if of.Message != "" {
			says += ": " + of.Message
		}
		if of.Sync != v1alpha1.OutOfSync && of.Sync != v1alpha1.Synced {
			part.Summary, part.Error = "", says
		}
		part.line = words.PluginLine(of.Plugin, of.DeployTarget, says)
		out = append(out, part)
	}
	for _, name := range silent(application) {
		out = append(out, pluginPart{Plugin: name, Unsupported: true, line: words.PluginLine(name, "", silence)})
	}
	return out
}

// silence is what is shown of a plugin that has told nothing.
const silence = "not supported: it has told nothing of what is there"

// silent are the plugins of an application that have told nothing of what was released.
func silent(application *v1alpha1.Application) (out []string) {
	if application.Status.LiveRevision == "" {
		return nil
	}
	for i := range application.Spec.Plugins {
		name := application.Spec.Plugins[i].Name
		if !slices.ContainsFunc(application.Status.Plugins, func(of v1alpha1.PluginTargetStatus) bool { return of.Plugin == name }) {
			out = append(out, name)
		}
	}
	return out
}

// marks stand before resources that a release makes, takes away and changes.
var marks = map[v1alpha1.PluginDifferenceKind]string{v1alpha1.PluginMissing: "+", v1alpha1.PluginExtra: "-", v1alpha1.PluginChanged: "~"}

// text is what there is to see of it.
func (p *pluginPart) text() string {
	var out strings.Builder
	fmt.Fprintln(&out, p.line)
	for i := range p.Differences {
		mark := marks[p.Differences[i].Kind]
		if mark == "" {
			mark = "?"
		}
		fmt.Fprintf(&out, "%s %s\n", mark, words.Difference(&p.Differences[i]))
	}
	if more := int(p.DifferenceCount) - len(p.Differences); more > 0 {
		fmt.Fprintf(&out, "... and %d more\n", more)
	}
	return out.String()
}

// byPlugins is what all of them say.
func (p *plan) byPlugins() string {
	var out strings.Builder
	for i := range p.Plugins {
		out.WriteString(p.Plugins[i].text())
	}
	if p.PluginsError != "" {
		fmt.Fprintf(&out, "Plugins: unknown: %s\n", p.PluginsError)
	}
	if out.Len() > 0 && len(p.Targets) > 0 {
		return "\n" + out.String()
	}
	return out.String()
}

// differenceRows has a row for each resource of a plugin that is not as it was released.
func differenceRows(plugins []v1alpha1.PluginTargetStatus) (rows [][]string) {
	for i := range plugins {
		of := &plugins[i]
		for j := range of.Differences {
			rows = append(rows, []string{
				text.Line(of.Plugin, longestCell), text.Line(of.DeployTarget, longestCell), string(of.Differences[j].Kind), words.Difference(&of.Differences[j]),
			})
		}
		if more := int(of.DifferenceCount) - len(of.Differences); more > 0 && len(of.Differences) > 0 {
			rows = append(rows, []string{text.Line(of.Plugin, longestCell), text.Line(of.DeployTarget, longestCell), "", fmt.Sprintf("... and %d more", more)})
		}
	}
	return rows
}
