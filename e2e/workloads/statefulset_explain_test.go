package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// TestExplainShowsWhatTheServerSees holds up a move by a pod that does not go, and asks what the clusters are told and wait for.
func TestExplainShowsWhatTheServerSees(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Database("db", 3, manifests.SetOn("east")))
	expect.SetRolledOut(s, "db", 3)
	if got := s.Logical.CLI("explain", "statefulset/db"); strings.Contains(got, "HELD BACK") {
		t.Errorf("a workload that rests is explained as if it moved:\n%s", got)
	}
	s.East.Kubectl("patch", "pod", "db-0", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
	t.Cleanup(func() {
		s.East.Try("patch", "pod", "db-0", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	})
	s.Logical.Kubectl("annotate", "statefulset", "db", v1alpha1.AnnotationClusters+"=west", "--overwrite")
	expect.Pods(s.West, "app=db", manifests.Ordinals("db", 1, 3))
	framework.AwaitList(s.East, "app=db", "the last pod is ending", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].DeletionTimestamp != nil
	})

	type ordinals struct{ Start, End int32 }
	type explained struct {
		Live     bool
		Clusters []struct {
			Name   string
			Member struct {
				Connected, Synced, Holds bool
				Told                     int32
				Keeps                    []ordinals
			}
			Next struct {
				Held   bool
				Reason string
				Share  struct{ Replicas int32 }
			}
		}
	}
	s.Logical.Poll("the explanation says what east keeps and west waits for", func() error {
		var got explained
		text := s.Logical.CLI("explain", "statefulset/db", "-o", "json")
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			return err
		}
		if !got.Live || len(got.Clusters) != 2 {
			return fmt.Errorf("it is %s", text)
		}
		east, west := got.Clusters[0], got.Clusters[1]
		switch {
		case !east.Member.Connected || !west.Member.Synced:
			return errors.New("the clusters are not connected")
		case !slices.ContainsFunc(east.Member.Keeps, func(r ordinals) bool { return r == ordinals{0, 1} }):
			return fmt.Errorf("east keeps %v, want ordinal 0", east.Member.Keeps)
		case !west.Next.Held || west.Next.Share.Replicas != 2 || west.Member.Told != 2:
			return fmt.Errorf("west is told %d and is to hold %+v, want 2 replicas", west.Member.Told, west.Next)
		case !strings.Contains(west.Next.Reason, `to stop in cluster "east"`):
			return fmt.Errorf("west waits for %q", west.Next.Reason)
		}
		return nil
	})
	expect.Says(t, s.Logical.CLI("explain", "statefulset/db"), "TOLD", "HELD BACK", `to stop in cluster "east"`)

	viewer := s.Logical.As(framework.ServiceAccount(s, "viewer", "view"))
	s.Logical.Poll("who may view the namespace may see it", func() error {
		return framework.Failure(viewer.Try("get", "--raw", "/apis/apps/v1/namespaces/"+s.Namespace+"/statefulsets/db/fleet"))
	})
	expect.Says(t, viewer.CLI("explain", "statefulset/db"), "cannot be shown", `to stop in cluster "east"`)
	expect.Refused(t, viewer.Try("get", "--raw", "/apis/apps/v1/namespaces/kube-system/statefulsets/db/fleet"), "forbidden", `"statefulsets/fleet"`)
	s.Logical.Kubectl("create", "role", "sets-only", "--verb=get,list", "--resource=statefulsets.apps,pods")
	reader := s.Logical.As(framework.ServiceAccountWith(s, "reader", "--role=sets-only"))
	expect.Refused(t, reader.Try("get", "--raw", "/apis/apps/v1/namespaces/"+s.Namespace+"/statefulsets/db/fleet"), "forbidden", `"statefulsets/fleet"`)
	if got := reader.CLI("explain", "statefulset/db"); strings.Contains(got, "TOLD") || !strings.Contains(got, "HELD BACK") {
		t.Errorf("who may not see it is told otherwise than by what is recorded:\n%s", got)
	}

	s.East.Kubectl("patch", "pod", "db-0", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	expect.SetRolledOut(s, "db", 3)
	s.Logical.Poll("nothing is explained of a move that is over", func() error {
		if got := s.Logical.CLI("explain", "statefulset/db"); strings.Contains(got, "HELD BACK") {
			return errors.New(got)
		}
		return nil
	})
}
