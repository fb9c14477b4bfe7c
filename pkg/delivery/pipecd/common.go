package pipecd

import (
	"fmt"
	"strings"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// common reads what applications of all kinds have.
func (r *reading) common(spec *fields) {
	if name := spec.text("name"); name != "" {
		if other := r.out.Name; other != "" && other != name {
			r.refuse(spec.at("name"), name, fmt.Sprintf("%s is %q: write one of them, or the same twice", r.out.nameAt, other))
		}
		r.out.Name, r.out.nameAt = name, spec.at("name").String()
	}
	if r.out.Description = spec.text("description"); r.out.Description != "" {
		r.out.descriptionAt = spec.at("description").String()
	}
	r.labels(spec)
	r.planner(spec)
	r.trigger(spec)
	r.drift(spec)
	spec.ignore("applications have no environments; a label can say it", "envName")
	spec.ignore("Releases have no such bound; stages have their timeout, and clusters spec.progressDeadlineSeconds", "timeout")
	spec.ignore("no application follows another by itself; a Pipeline of environments does that", "postSync")
	spec.ignore("secrets in git are not decrypted; put them into Secrets", "encryption", "sealedSecrets")
	spec.ignore("files are not embedded in manifests; kustomize's generators do that", "attachment", "attachments")
	spec.ignore("git is not written to when an event comes", "eventWatcher")
	spec.ignore("nobody is mentioned; spec.notifications of the Application says who is told of what", "notification")
}

func (r *reading) planner(spec *fields) {
	planner, matcher := spec.object("planner"), spec.object("commitMatcher")
	out := v1alpha1.Planner{AlwaysUsePipeline: planner.flag("alwaysUsePipeline")}
	if quick, pipeline := matcher.text("quickSync"), matcher.text("pipeline"); quick != "" || pipeline != "" {
		out.CommitMatcher = &v1alpha1.CommitMatcher{QuickSync: quick, Pipeline: pipeline}
	}
	if out != (v1alpha1.Planner{}) {
		r.out.Spec.Planner = &out
	}
	r.autoRollback(planner)
	planner.done()
	matcher.done()
}

// saidOtherwise is what is wrong with a field that may be in two places.
const saidOtherwise = "it is said otherwise in another place: write one of them, or the same twice"

// autoRollback is read in either of its places. It is on where no file says so.
func (r *reading) autoRollback(in *fields) {
	on, when := in.flag("autoRollback"), v1alpha1.RollbackNever
	if !in.has("autoRollback") {
		return
	}
	if on {
		when = v1alpha1.RollbackAny
	}
	if other := r.out.Spec.Rollback.When; other != "" && other != when {
		r.refuse(in.at("autoRollback"), on, saidOtherwise)
	}
	r.out.Spec.Rollback.When = when
}

func (r *reading) trigger(spec *fields) {
	trigger := spec.object("trigger")
	onCommit, onCommand, onOutOfSync, onChain := trigger.object("onCommit"), trigger.object("onCommand"), trigger.object("onOutOfSync"), trigger.object("onChain")
	out := &r.out.Spec.Trigger
	if onCommit.flag("disabled") {
		out.Mode = v1alpha1.TriggerManual
	}
	out.Paths = append(r.patterns(onCommit, "paths"), r.patterns(spec, "triggerPaths")...)
	out.Ignores = r.patterns(onCommit, "ignores")
	if onCommand.flag("disabled") {
		r.ignore(onCommand.at("disabled"), "whoever may create Releases may ask for one")
	}
	if on := onOutOfSync.has("disabled") && !onOutOfSync.flag("disabled"); on {
		r.driftSpec().Heal = true
	} else {
		onOutOfSync.take("disabled")
	}
	onOutOfSync.ignore("drift is healed when it is seen", "minWindow")
	if on := onChain.has("disabled") && !onChain.flag("disabled"); on {
		r.ignore(onChain.at("disabled"), "no application follows another by itself; a Pipeline of environments does that")
	} else {
		onChain.take("disabled")
	}
	for _, part := range []*fields{onCommit, onCommand, onOutOfSync, onChain, trigger} {
		part.done()
	}
}

// patterns returns those entries of a list that mean the same as patterns of files. PipeCD takes them for regular expressions.
func (r *reading) patterns(in *fields, key string) []string {
	var out []string
	for i, entry := range in.texts(key) {
		if strings.ContainsAny(entry, `^$()|+\[]{}?`) || strings.Contains(entry, ".*") {
			r.ignore(in.at(key).Index(i), "it is a regular expression; write a pattern such as web/**")
			continue
		}
		out = append(out, entry)
	}
	return out
}

func (r *reading) driftSpec() *v1alpha1.Drift {
	if r.out.Spec.Drift == nil {
		r.out.Spec.Drift = &v1alpha1.Drift{}
	}
	return r.out.Spec.Drift
}

// drift reads the fields of which a difference does not count.
func (r *reading) drift(spec *fields) {
	detection := spec.object("driftDetection")
	for i, entry := range detection.texts("ignoreFields") {
		at := detection.at("ignoreFields").Index(i)
		object, path, ok := strings.Cut(entry, "#")
		parts := strings.Split(object, ":")
		if !ok || len(parts) != 4 || path == "" {
			r.refuse(at, entry, "must be apiVersion:kind:namespace:name#field.path")
			continue
		}
		if parts[2] != "" {
			r.ignore(at, "the namespace in it does not count; the kind and name do")
		}
		group, _, grouped := strings.Cut(parts[0], "/")
		if !grouped {
			group = ""
		}
		r.ignoreDrift(v1alpha1.DriftIgnore{Group: group, Kind: parts[1], Name: parts[3]}, pointer(path))
	}
	detection.done()
}

func (r *reading) ignoreDrift(of v1alpha1.DriftIgnore, pointer string) {
	drift := r.driftSpec()
	for i := range drift.Ignore {
		if known := &drift.Ignore[i]; known.Group == of.Group && known.Kind == of.Kind && known.Name == of.Name {
			known.JSONPointers = append(known.JSONPointers, pointer)
			return
		}
	}
	of.JSONPointers = []string{pointer}
	drift.Ignore = append(drift.Ignore, of)
}

// pointer writes the path of a field as a JSON pointer.
func pointer(path string) string {
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
	return "/" + strings.ReplaceAll(escaped, ".", "/")
}
