package host

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
)

// argument is what a program is told of itself, in the spelling of PipeCD.
type argument struct {
	Name          string           `json:"name"`
	URL           string           `json:"url"`
	Port          int32            `json:"port"`
	Config        json.RawMessage  `json:"config,omitempty"`
	DeployTargets []targetArgument `json:"deployTargets,omitempty"`
}

type targetArgument struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Config json.RawMessage   `json:"config"`
}

// The grace period and the level of logs that programs have unless they are told otherwise. Older ones know no arguments for them.
const (
	usualGraceSeconds = 30
	usualLogLevel     = "info"
)

// arguments are what a program is started with.
func arguments(name string, spec Spec, program, service string, port int32) ([]string, error) {
	told := argument{Name: name, URL: plainURL(spec.URL, program), Port: port, Config: spec.Config}
	for _, target := range spec.Targets {
		told.DeployTargets = append(told.DeployTargets, argumentOf(target))
	}
	config, err := json.Marshal(told)
	if err != nil {
		return nil, err
	}
	out := []string{"start", "--piped-plugin-service", service, "--config", string(config)}
	if seconds := int(spec.Grace.Seconds()); seconds != usualGraceSeconds {
		out = append(out, "--grace-period", strconv.Itoa(seconds)+"s")
	}
	if spec.LogLevel != "" && spec.LogLevel != usualLogLevel {
		out = append(out, "--log-level", spec.LogLevel)
	}
	return out, nil
}

// argumentOf is a target as programs read it, who want a configuration of each.
func argumentOf(target plugins.Target) targetArgument {
	out := targetArgument{Name: target.Name, Labels: target.Labels, Config: target.Config}
	if len(out.Config) == 0 {
		out.Config = json.RawMessage("{}")
	}
	return out
}

// plainURL is the URL of a program as it is told, which refuses to start with others than these.
func plainURL(from, program string) string {
	if of, err := url.Parse(from); err == nil && (of.Scheme == "file" || of.Scheme == "https" || of.Scheme == "oci") {
		return from
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(program)}).String()
}
