package plugins

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

const (
	// stagesShown is how many stages a line names.
	stagesShown = 2
	// longestError is what a line has room for. The status has it in full.
	longestError = 100
)

func columns() rest.TableConvertor {
	return table.New(append([]table.Column[*v1alpha1.Plugin]{
		table.Text("Ready", "Whether the process runs and answers.", func(p *v1alpha1.Plugin) string {
			if of := ready(p); of != nil {
				return string(of.Status)
			}
			return table.Unknown
		}),
		table.Text("Stages", "The stages that the plugin offers, the first ones by name.", offered),
		table.Number("Restarts", "How often it was started again.", func(p *v1alpha1.Plugin) int64 { return p.Status.Restarts }),
		table.Text("Last Error", "Why it last failed.", func(p *v1alpha1.Plugin) string {
			return cmp.Or(text.Line(p.Status.LastError, longestError), table.None)
		}),
		table.Age[*v1alpha1.Plugin](),
	}, table.WhenWide(
		table.Text("Reason", "Why it is ready, or why not.", func(p *v1alpha1.Plugin) string {
			if of := ready(p); of != nil {
				return of.Reason
			}
			return table.Unknown
		}),
		table.Text("Services", "What it can do.", func(p *v1alpha1.Plugin) string { return cmp.Or(strings.Join(p.Status.Services, ","), table.None) }),
		table.Number("Targets", "The deploy targets that it was started with.", func(p *v1alpha1.Plugin) int64 { return int64(len(p.Status.Targets)) }),
		table.Text("URL", "Where the program comes from.", func(p *v1alpha1.Plugin) string { return p.Spec.URL }),
	)...)...)
}

func ready(plugin *v1alpha1.Plugin) *metav1.Condition {
	return meta.FindStatusCondition(plugin.Status.Conditions, v1alpha1.PluginReady)
}

func offered(plugin *v1alpha1.Plugin) string {
	stages := plugin.Status.Stages
	if len(stages) > stagesShown+1 {
		return fmt.Sprintf("%s,+%d", strings.Join(stages[:stagesShown], ","), len(stages)-stagesShown)
	}
	return cmp.Or(strings.Join(stages, ","), table.None)
}
