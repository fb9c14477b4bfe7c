// Package secrets says which Secrets an Application has the server use, and for what.
//
// What a Secret holds is sent, or signs and checks what others send. So a Secret and what it is used for belong together: whoever brings them together must be
// allowed to read the Secret. Admission asks that of whoever writes an Application. Files in repositories and revisions are written by people whom nobody asks, so
// their stages use a Secret only for what the Application has it used for itself.
package secrets

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Use is a Secret that the server uses because an Application, or a stage, says so.
type Use struct {
	// Path is the field that names the Secret.
	Path *field.Path
	// Name is that of the Secret, in the namespace of the Application.
	Name string
	// For is what the Secret is used for. The same Secret for something else is another use.
	For string
}

// Of are the uses that an Application states itself.
func Of(spec *v1alpha1.ApplicationSpec) (out []Use) {
	if spec.Source.Git != nil {
		out = ofGit(spec.Source.Git, field.NewPath("spec", "source", "git"))
	}
	for i := range spec.Notifications {
		to, at := &spec.Notifications[i], field.NewPath("spec", "notifications").Index(i)
		// The address is in the Secret. The type says whether what is sent is signed by another of its keys.
		out = append(out, Use{at.Child("secretRef", "name"), to.SecretRef.Name, fmt.Sprintf("notifications of type %s", cmp.Or(to.Type, v1alpha1.NotificationWebhook))})
	}
	if spec.Pipeline == nil {
		return out
	}
	for i := range spec.Pipeline.Stages {
		if stage := &spec.Pipeline.Stages[i]; !spec.RunByPlugin(stage) {
			out = append(out, ofStage(stage, field.NewPath("spec", "pipeline", "stages").Index(i))...)
		}
	}
	return out
}

func ofGit(git *v1alpha1.GitSource, at *field.Path) (out []Use) {
	if git.SecretRef != nil {
		out = append(out, Use{at.Child("secretRef", "name"), git.SecretRef.Name, fmt.Sprintf("repository %q", git.URL)})
	}
	if git.Webhook != nil {
		// What this one holds is sent to nobody. But the server answers everybody who calls whether a signature is by it, so whoever names it could guess at it.
		out = append(out, Use{at.Child("webhook", "secretRef", "name"), git.Webhook.SecretRef.Name, "signatures of pushes"})
	}
	if git.Pipecd == nil {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(git.Pipecd.AnalysisSecrets)) {
		out = append(out, Use{at.Child("pipecd", "analysisSecrets").Key(name), git.Pipecd.AnalysisSecrets[name], forMetrics(git.Pipecd.AnalysisProviders[name])})
	}
	return out
}

// OfStages are the uses of stages, as an Application, a file or the plan of a release has them.
func OfStages(stages []v1alpha1.Stage, at *field.Path) (out []Use) {
	for i := range stages {
		out = append(out, ofStage(&stages[i], at.Index(i))...)
	}
	return out
}

// ofStage are those of a stage that is built in. What a plugin runs is for the plugin to read, which has credentials of its own.
func ofStage(stage *v1alpha1.Stage, at *field.Path) (out []Use) {
	at = at.Child("with")
	options, _ := v1alpha1.DecodeOptions(stage, at) // what is wrong with them is refused elsewhere
	analysis, is := options.(*v1alpha1.AnalysisOptions)
	if !is {
		return nil
	}
	for i := range analysis.Metrics {
		if metric := &analysis.Metrics[i]; metric.SecretRef != nil {
			out = append(out, Use{at.Child("metrics").Index(i).Child("secretRef", "name"), metric.SecretRef.Name, forMetrics(metric.Provider)})
		}
	}
	for i := range analysis.HTTPS {
		if request := &analysis.HTTPS[i]; request.SecretRef != nil {
			out = append(out, Use{at.Child("https").Index(i).Child("secretRef", "name"), request.SecretRef.Name, forRequest(request)})
		}
	}
	return out
}

func forMetrics(provider string) string { return fmt.Sprintf("queries to %q", provider) }

// forRequest tells requests apart by all that is sent: behind one address, a header such as Host leads to another server, and another method does something else.
func forRequest(request *v1alpha1.AnalysisHTTP) string {
	out := fmt.Sprintf("requests %s %q", cmp.Or(request.Method, "GET"), request.URL)
	if len(request.Headers) > 0 {
		out += fmt.Sprintf(" with headers %q", request.Headers)
	}
	return out
}

// Beyond are those of uses that are not among known ones, wherever these are named.
func Beyond(uses, known []Use) (out []Use) {
	type pair struct{ name, use string }
	had := map[pair]bool{}
	for _, use := range known {
		had[pair{use.Name, use.For}] = true
	}
	for _, use := range uses {
		if !had[pair{use.Name, use.For}] {
			out = append(out, use)
		}
	}
	return out
}

// Unstated refuses those uses of stages that their Application does not state itself.
func Unstated(by *v1alpha1.ApplicationSpec, stages []v1alpha1.Stage, at *field.Path) (errs field.ErrorList) {
	for _, use := range Beyond(OfStages(stages, at), Of(by)) {
		errs = append(errs, field.Forbidden(use.Path, fmt.Sprintf("the Application does not say itself that Secret %q is for %s: for queries, set "+
			"spec.source.git.pipecd.analysisProviders and analysisSecrets of the Application; for requests, have the pipeline in the Application", use.Name, use.For)))
	}
	return errs
}
