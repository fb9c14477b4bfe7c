package capacity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestBelieve(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	small := list("cpu", "64", "memory", "256Gi", "pods", "220")
	for name, test := range map[string]struct {
		reported, last, from, limits corev1.ResourceList
		after                        time.Duration
		want, wantFrom               corev1.ResourceList
		held                         string
	}{
		"all counts of what joins":              {reported: list("cpu", "50000"), want: list("cpu", "50000"), wantFrom: list("cpu", "50000")},
		"what was there before an upgrade does": {reported: list("cpu", "5000"), last: list("cpu", "2500"), want: list("cpu", "5000"), wantFrom: list("cpu", "2500")},
		"a small cluster grows as it likes":     {reported: list("cpu", "1000", "memory", "8Ti", "pods", "20000"), last: small, from: small, want: list("cpu", "1000", "memory", "8Ti", "pods", "20000"), wantFrom: small},
		"a jump counts up to what does not matter": {
			reported: list("cpu", "200k", "memory", "256Gi"), last: small, from: small,
			want: list("cpu", "1000", "memory", "256Gi"), wantFrom: small, held: "1k of 200k cpu",
		},
		"and no more as long as the window lasts": {
			reported: list("cpu", "200k"), last: list("cpu", "1000"), from: list("cpu", "64"), after: Window - time.Second,
			want: list("cpu", "1000"), wantFrom: list("cpu", "64"), held: "1k of 200k cpu",
		},
		"then it doubles": {
			reported: list("cpu", "200k"), last: list("cpu", "1000"), from: list("cpu", "64"), after: Window,
			want: list("cpu", "2000"), wantFrom: list("cpu", "1000"), held: "2k of 200k cpu",
		},
		"once, however long it has waited": {
			reported: list("cpu", "200k"), last: list("cpu", "2000"), from: list("cpu", "1000"), after: 1000 * Window,
			want: list("cpu", "4000"), wantFrom: list("cpu", "2000"), held: "4k of 200k cpu",
		},
		"what shrinks may come back": {reported: list("cpu", "5000"), last: list("cpu", "10"), from: list("cpu", "5000"), after: Window, want: list("cpu", "5000"), wantFrom: list("cpu", "5000")},
		"what shrinks keeps what it may come back to": {
			reported: list("cpu", "50k"), last: list("cpu", "10"), from: list("cpu", "5000"), after: Window,
			want: list("cpu", "10k"), wantFrom: list("cpu", "5000"), held: "10k of 50k cpu",
		},
		"a limit is the word of an administrator": {reported: list("cpu", "200k"), last: small, from: small, limits: list("cpu", "150k"), want: list("cpu", "150k"), wantFrom: small},
		"a limit on something else is not":        {reported: list("cpu", "200k"), last: small, from: small, limits: list("memory", "1Ti"), want: list("cpu", "1000"), wantFrom: small, held: "1k of 200k cpu"},
		"devices count up to a number":            {reported: list("example.com/gpu", "5000"), last: small, from: small, want: list("example.com/gpu", "1000"), wantFrom: small, held: "1k of 5k example.com/gpu"},
		"nothing is something":                    {reported: list("cpu", "0"), last: list("cpu", "64"), from: small, want: list("cpu", "0"), wantFrom: small},
	} {
		t.Run(name, func(t *testing.T) {
			growth := Growth{From: test.from}
			if test.from != nil {
				growth.At = start
			}
			got := Believe(test.reported, test.last, growth, test.limits, start.Add(test.after))
			if !equality.Semantic.DeepEqual(got.Counted, test.want) || !equality.Semantic.DeepEqual(got.Growth.From, test.wantFrom) || got.Held != test.held {
				t.Errorf("it counts %v from %v, held %q\nwant %v from %v, held %q", got.Counted, got.Growth.From, got.Held, test.want, test.wantFrom, test.held)
			}
			if (got.Held != "") != !got.Until.IsZero() {
				t.Errorf("held %q until %v", got.Held, got.Until)
			}
		})
	}
}

// A restart, or another replica, goes on from what is stored: deciding again at the same moment changes nothing.
func TestBelieveTwiceIsOnce(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	last, growth := list("cpu", "64"), Growth{}
	reported := list("cpu", "200k")
	for i := range 200 {
		now := start.Add(time.Duration(i) * time.Minute)
		once := Believe(reported, last, growth, nil, now)
		twice := Believe(reported, once.Counted, once.Growth, nil, now)
		if !equality.Semantic.DeepEqual(once.Counted, twice.Counted) || !equality.Semantic.DeepEqual(once.Growth.From, twice.Growth.From) ||
			!once.Growth.At.Equal(twice.Growth.At) || once.Held != twice.Held {
			t.Fatalf("after %d minutes: %+v, then %+v", i, once, twice)
		}
		most := resource.NewQuantity(1000<<(i/10), resource.DecimalSI)
		if counted := once.Counted[corev1.ResourceCPU]; counted.Cmp(*most) > 0 {
			t.Fatalf("after %d minutes %s count, want %s at most", i, counted.String(), most.String())
		}
		last, growth = once.Counted, once.Growth
	}
	if got := last[corev1.ResourceCPU]; got.Cmp(reported[corev1.ResourceCPU]) != 0 {
		t.Errorf("in the end %s count, want all", got.String())
	}
}

func TestSumNodesLeavesOutWhatNoMachineHas(t *testing.T) {
	has := func(pairs ...string) nodeOption {
		return func(n *corev1.Node) { n.Status.Allocatable, n.Status.Capacity = list(pairs...), list(pairs...) }
	}
	many := corev1.ResourceList{}
	for i := range 100 {
		many[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1")
	}
	for name, test := range map[string]struct {
		node   *corev1.Node
		doubts string
	}{
		"one of 200,000 CPUs":       {node(has("cpu", "200000")), "no machine has more than 4096 of cpu"},
		"one of less than nothing":  {node(has("memory", "-1")), "it has a negative amount of memory"},
		"one of all the memory":     {node(has("memory", "1Ei")), "no machine has more than 128Ti of memory"},
		"one of too many resources": {node(func(n *corev1.Node) { n.Status.Allocatable = many }), "it has 100 resources"},
		"one of a nameless thing":   {node(has("a b", "1")), "it has a resource without a name"},
		"a large one":               {node(has("cpu", "2048", "memory", "64Ti", "pods", "1000")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := SumNodes([]*corev1.Node{node(), test.node})
			want := SumNodes([]*corev1.Node{node()})
			if test.doubts == "" {
				if got.Count.Ready != 2 || got.Doubt != "" {
					t.Errorf("it counts %d nodes, doubts %q", got.Count.Ready, got.Doubt)
				}
				return
			}
			if !equality.Semantic.DeepEqual(got.Allocatable, want.Allocatable) || !equality.Semantic.DeepEqual(got.Capacity, want.Capacity) {
				t.Errorf("it counts %v of %v, want %v", got.Allocatable, got.Capacity, want.Allocatable)
			}
			if !strings.Contains(got.Doubt, test.doubts) || got.Count.Total != 2 || got.Count.Ready != 1 {
				t.Errorf("it has %+v nodes, doubts %q, want %q", got.Count, got.Doubt, test.doubts)
			}
		})
	}
}

func TestSumNodesShowsOnlyWhatCanBeShown(t *testing.T) {
	got := SumNodes([]*corev1.Node{node(func(n *corev1.Node) {
		n.Labels = map[string]string{corev1.LabelTopologyRegion: "no/label", corev1.LabelTopologyZone: "eu-1a"}
		n.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "linux\x1b[2J", Architecture: "amd64", KernelVersion: "6.1\x07"}
	})})
	if len(got.Topology) != 1 || got.Topology[corev1.LabelTopologyZone] != "eu-1a" {
		t.Errorf("topology is %v", got.Topology)
	}
	if got.Info.OperatingSystem != "" || got.Info.Architecture != "amd64" || strings.Contains(got.Info.KernelVersion, "\x07") {
		t.Errorf("it runs %+v", got.Info)
	}
}

func TestSumsOfManyNodesDoNotOverflow(t *testing.T) {
	var nodes []*corev1.Node
	for range 100_000 {
		nodes = append(nodes, node(func(n *corev1.Node) { n.Status.Allocatable = list("memory", "128Ti", "cpu", "4096") }))
	}
	got := SumNodes(nodes)
	if memory := got.Allocatable[corev1.ResourceMemory]; memory.Value() <= 0 {
		t.Errorf("memory is %s", memory.String())
	}
}

func TestRequestsOfAPodDoNotOverflow(t *testing.T) {
	usage := NewUsage(nil)
	usage.Begin()
	for i := range 100 {
		usage.PodChanged(pod(fmt.Sprint(i)), list("cpu", "9223372036854775807", "memory", "9223372036854775807", "example.com/gpu", "-5"), 0, true)
	}
	usage.Synced()
	sums, _ := usage.Snapshot()
	for name, amount := range sums {
		if amount.Sign() < 0 {
			t.Errorf("%s is %s", name, amount.String())
		}
	}
	for i := range 100 {
		usage.PodGone(pod(fmt.Sprint(i)))
	}
	if sums, _ := usage.Snapshot(); !equality.Semantic.DeepEqual(sums, list("cpu", "0", "memory", "0", "pods", "0")) {
		t.Errorf("what is left of nothing is %v", sums)
	}
}
