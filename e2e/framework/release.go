package framework

import (
	"encoding/json"
	"fmt"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// AwaitRelease waits until a release of a revision is as it should be, and returns it.
func (s *Scenario) AwaitRelease(revision, claim string, holds func(v1alpha1.Release) bool) (last v1alpha1.Release) {
	s.Helper()
	s.Logical.Poll("the release of "+revision+" "+claim, func() error {
		result := s.Logical.Try("get", "releases", "-o", "json")
		if err := Failure(result); err != nil {
			return err
		}
		var all v1alpha1.ReleaseList
		if err := json.Unmarshal([]byte(result.Stdout), &all); err != nil {
			return err
		}
		for _, release := range all.Items {
			if release.Spec.Revision == revision {
				if last = release; holds(release) {
					return nil
				}
			}
		}
		return fmt.Errorf("it is %s: %s; stages are %+v", last.Status.Phase, last.Status.Message, last.Status.Stages)
	})
	return last
}
