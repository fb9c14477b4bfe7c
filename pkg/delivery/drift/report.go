package drift

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

const (
	// mostFields bounds the fields that are told of an object, and of all objects together.
	mostFields = 20
	// mostClusters bounds the clusters that are named beside a field.
	mostClusters = 20
	// mostValue bounds what is told of a value, in bytes, and mostPath what is told of its path.
	mostValue = 128
	mostPath  = 256
	// mask stands for a value of a Secret.
	mask = "***"
)

// Object is an object that is not what was released.
type Object struct {
	Group, Kind, Name string
	// Clusters are those that the difference reaches, sorted: none if it is in the logical cluster alone, since they hold what was released, or nothing.
	Clusters []string
	// Missing says that it is not there at all.
	Missing bool
	// Fields are those that differ, as far as they are told, and Count is how many there are.
	Fields []Field
	Count  int
	// Healed is how often it was put back of late, and Unhealed why that has not worked.
	Healed   int
	Unhealed string
	// Unclear says why it cannot be compared.
	Unclear string
}

// Field is a difference in words.
type Field struct {
	Path, Wanted, Found string
	// Clusters are those that it reaches, sorted.
	Clusters []string
}

// Reach says which clusters differences reach, by their paths.
type Reach map[string][]string

// Clusters are those that any of them reaches, sorted.
func (r Reach) Clusters() []string {
	all := sets.New[string]()
	for _, clusters := range r {
		all.Insert(clusters...)
	}
	return sets.List(all)
}

// Fields puts differences of an object into words, with the clusters that they reach. Values of Secrets are masked.
func Fields(kind schema.GroupKind, of []Difference, reach Reach) []Field {
	var out []Field
	for _, d := range of[:min(len(of), mostFields)] {
		hidden := isSecret(kind) && !open(d.Path)
		out = append(out, Field{text.Line(d.Path, mostPath), words(d.Wanted, hidden), words(d.Found, hidden), reach[d.Path]})
	}
	return out
}

func isSecret(kind schema.GroupKind) bool { return kind == schema.GroupKind{Kind: "Secret"} }

// open reports whether a field of a Secret is told to everybody.
func open(path string) bool {
	return path == "/type" || path == "/immutable" || strings.HasPrefix(path, "/metadata/labels/")
}

func words(value any, hidden bool) string {
	switch {
	case value == nil:
		return ""
	case hidden:
		return mask
	}
	content, err := json.Marshal(value)
	if err != nil {
		return mask
	}
	return text.Line(string(content), mostValue)
}

// String says what is wrong with the object: of several fields, the first.
func (o Object) String() string {
	out := o.says(o.Fields, o.Count)
	if len(o.Clusters) == 0 && o.Unclear == "" && !o.Missing {
		out += " in the logical cluster alone"
	}
	return delivery.Said(out)
}

// In says what is wrong with the object in a cluster that the difference reaches.
func (o Object) In(cluster string) string {
	here := slices.DeleteFunc(slices.Clone(o.Fields), func(f Field) bool { return !slices.Contains(f.Clusters, cluster) })
	return delivery.Said(o.says(here, len(here)))
}

func (o Object) says(fields []Field, count int) string {
	name := o.Kind + "/" + o.Name
	switch {
	case o.Unclear != "":
		return fmt.Sprintf("%s cannot be compared with what was released: %s", name, o.Unclear)
	case o.Missing:
		return name + " is not there any more"
	case len(fields) == 0:
		return name + " differs"
	}
	f := fields[0]
	if count > 1 {
		return fmt.Sprintf("%s: %d fields differ, such as %s, which is to be %s, and %s was found", name, count, f.Path, orNothing(f.Wanted), orNothing(f.Found))
	}
	return fmt.Sprintf("%s: %s is to be %s, and %s was found", name, f.Path, orNothing(f.Wanted), orNothing(f.Found))
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// Status is drift as an application shows it, and how many fields there are in all.
func Status(objects []Object) (out []v1alpha1.FieldDrift, count int32) {
	add := func(o Object, f Field) {
		if len(out) < mostFields {
			out = append(out, v1alpha1.FieldDrift{
				Group: o.Group, Kind: o.Kind, Name: o.Name, Path: f.Path, Wanted: f.Wanted, Found: f.Found,
				Clusters: slices.Clone(f.Clusters[:min(len(f.Clusters), mostClusters)]),
			})
		}
	}
	for _, o := range objects {
		switch {
		case o.Unclear != "":
		case o.Missing:
			count++
			add(o, Field{Clusters: o.Clusters})
		default:
			count += int32(o.Count)
			for _, f := range o.Fields {
				add(o, f)
			}
		}
	}
	return out, count
}

// Ignored are the fields of an object of which a difference does not count, as pointers.
func Ignored(drift *v1alpha1.Drift, kind schema.GroupKind, name string) []string {
	if drift == nil {
		return nil
	}
	var out []string
	for _, rule := range drift.Ignore {
		if (rule.Group == "" || rule.Group == kind.Group) && (rule.Kind == "" || rule.Kind == kind.Kind) && (rule.Name == "" || rule.Name == name) {
			out = append(out, rule.JSONPointers...)
		}
	}
	return out
}

const (
	// firstDelay is how long an object is left alone that was put back once, and lastDelay the longest.
	firstDelay = time.Second
	lastDelay  = 5 * time.Minute
)

// Patience is how often an object was put back. Who is at odds with somebody else over a field waits longer each time.
type Patience struct {
	Times int
	Last  time.Time
}

// Due is when the object may be put back.
func (p Patience) Due() time.Time {
	if p.Times == 0 {
		return time.Time{}
	}
	return p.Last.Add(p.delay())
}

// Fresh reports whether the object was put back so recently that it may not be seen yet.
func (p Patience) Fresh(now time.Time) bool { return p.Times > 0 && now.Sub(p.Last) < firstDelay }

func (p Patience) delay() time.Duration {
	delay := firstDelay
	for i := 1; i < p.Times && delay < lastDelay; i++ {
		delay *= 2
	}
	return min(delay, lastDelay)
}

// Next is the patience after the object was put back. What has stayed as it was for long enough begins anew.
func (p Patience) Next(now time.Time) Patience {
	if p.Times > 0 && now.Sub(p.Last) > 2*p.delay()+time.Minute {
		p.Times = 0
	}
	return Patience{p.Times + 1, now}
}
