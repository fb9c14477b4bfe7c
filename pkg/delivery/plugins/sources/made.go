package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

// mostObjects and mostBytes bound what plugins get of a revision that has no commit.
const (
	mostObjects = 10_000
	mostBytes   = 64 << 20
)

// objects writes what a revision holds, each object once, whichever targets have it. Secrets are left out: a plugin gets its own by its configuration.
func (s *Sources) objects(root *os.Root, revision *v1alpha1.ApplicationRevision) error {
	seen, count, size := map[string]bool{}, 0, 0
	for i := range revision.Spec.Targets {
		found, err := s.Objects(revision.Namespace, revision.Name, revision.Spec.Targets[i].Name)
		if err != nil {
			return err
		}
		for _, object := range found {
			if object.GetKind() == "Secret" && object.GroupVersionKind().Group == "" {
				continue
			}
			content, err := yaml.Marshal(object.Object)
			if err != nil {
				return fmt.Errorf("%w: %s %s: %w", ErrSource, object.GetKind(), object.GetName(), err)
			}
			if seen[string(content)] {
				continue
			}
			seen[string(content)] = true
			if count, size = count+1, size+len(content); count > mostObjects || size > mostBytes {
				return fmt.Errorf("%w: there are more than %d objects, or more than %d MiB of them", ErrSource, mostObjects, mostBytes>>20)
			}
			name := fmt.Sprintf("%05d-%s-%s.yaml", count, plain(object.GetKind()), plain(object.GetName()))
			if err := root.WriteFile(name, content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain is a name as a part of that of a file.
func plain(name string) string {
	const longest = 100
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return '_'
	}, strings.ToLower(name))
	return out[:min(len(out), longest)]
}

// application writes the application file of a revision whose source has none, of what the Application says.
func (s *Sources) application(app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision) ([]byte, error) {
	spec := read.Spec(app.Spec, revision)
	plugins := map[string]any{}
	for i := range spec.Plugins {
		plugin := &spec.Plugins[i]
		config := any(map[string]any{})
		if of := configOf(plugin, revision); len(of) > 0 {
			if err := json.Unmarshal(of, &config); err != nil {
				return nil, fmt.Errorf("%w: spec.plugins[%d].config: %w", ErrSource, i, err)
			}
		}
		name := plugin.Name
		if s.Called != nil {
			name = s.Called(name)
		}
		plugins[name] = config
	}
	out := map[string]any{"name": app.Name, "plugins": plugins}
	if len(app.Labels) > 0 {
		out["labels"] = app.Labels
	}
	if spec.Pipeline != nil {
		stages, err := stagesOf(spec.Pipeline.Stages)
		if err != nil {
			return nil, err
		}
		out["pipeline"] = map[string]any{"stages": stages}
	}
	return yaml.Marshal(map[string]any{"apiVersion": "pipecd.dev/v1beta1", "kind": "Application", "spec": out})
}

// configOf is what the plugin was to read when the revision was made.
func configOf(plugin *v1alpha1.ApplicationPlugin, revision *v1alpha1.ApplicationRevision) []byte {
	if delivery := revision.Spec.Delivery; delivery != nil {
		for i := range delivery.Plugins {
			if of := &delivery.Plugins[i]; of.Name == plugin.Name && of.Config != nil {
				return of.Config.Raw
			}
		}
	}
	if plugin.Config == nil {
		return nil
	}
	return plugin.Config.Raw
}

func stagesOf(stages []v1alpha1.Stage) ([]any, error) {
	var out []any
	for i := range stages {
		stage := map[string]any{"name": stages[i].Name}
		if stages[i].Desc != "" {
			stage["desc"] = stages[i].Desc
		}
		if timeout := stages[i].Timeout; timeout != nil {
			stage["timeout"] = timeout.Duration.String()
		}
		if with := stages[i].With; with != nil && len(with.Raw) > 0 {
			var options any
			if err := json.Unmarshal(with.Raw, &options); err != nil {
				return nil, errors.Join(ErrSource, fmt.Errorf("pipeline.stages[%d].with: %w", i, err))
			}
			stage["with"] = options
		}
		out = append(out, stage)
	}
	return out, nil
}
