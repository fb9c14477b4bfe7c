package delivery

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
)

func TestTheLogOfARelease(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(release)
	path := "/apis/delivery.manifold.dev/v1alpha1/namespaces/" + s.Namespace + "/releases/web-x2f/log"
	stage := `{"id":"go","name":"K8S_SYNC","phase":"Running","attempt":1,"startTime":"2026-01-02T03:04:05Z","targets":[{"name":"hoge","cluster":"east","phase":"Failed",` +
		`"message":"no \u001b[31mprogress","startTime":"2026-01-02T03:04:06Z","endTime":"2026-01-02T03:04:07Z"}]}`
	s.Logical.Kubectl("patch", "release", "web-x2f", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Running","stages":[`+stage+`]}}`)
	viewer := given(s, "vera", "view", "get releases/log")
	want := "2026-01-02T03:04:05Z go K8S_SYNC begins\n2026-01-02T03:04:06Z go hoge/east begins\n2026-01-02T03:04:07Z go hoge/east Failed: no ^[[31mprogress\n"
	s.Logical.Poll("the log tells of the stage", func() error {
		got := viewer.try("get", "--raw", path+"?stage=go")
		if err := framework.Failure(got); err != nil {
			return err
		}
		return framework.Contains(got.Stdout, want)
	})
	s.Logical.Kubectl("patch", "release", "web-x2f", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Cancelled","endTime":"2026-01-02T03:05:00Z"}}`)
	// Who follows it is let go at its end.
	got := viewer.try("get", "--raw", path+"?follow=true")
	if err := framework.Failure(got); err != nil {
		t.Fatal(err)
	}
	if err := framework.Contains(got.Stdout, want, "2026-01-02T03:05:00Z release Cancelled"); err != nil || strings.Count(got.Stdout, want) != 1 {
		t.Errorf("want its lines once, and its end: %v\n%s", err, got.Stdout)
	}
	if got := viewer.try("get", "releaselogparts"); got.Code == 0 {
		t.Errorf("who may read the log may list its parts: %s", got)
	}
	parts := []string{"get", "releaselogparts", "-o", "name"}
	if got := s.Logical.Kubectl(parts...); got == "" {
		t.Error("there are no parts")
	}
	s.Logical.Kubectl("delete", "release", "web-x2f")
	s.Logical.Poll("the log goes with the release", func() error {
		return framework.Failure(framework.Result{Command: "parts that are left", Stdout: s.Logical.Kubectl(parts...), Code: len(s.Logical.Kubectl(parts...))})
	})
}
