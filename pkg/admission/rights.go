package admission

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// May reports whether somebody has a right now.
func May(ctx context.Context, by authorizer.Authorizer, of weave.Author, right weave.Right) bool {
	decision, _, err := by.Authorize(ctx, attributesOf(&user.DefaultInfo{Name: of.User, Groups: of.Groups}, right))
	return err == nil && decision == authorizer.DecisionAllow
}

func attributesOf(of user.Info, right weave.Right) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: of, Verb: right.Verb, Namespace: right.Namespace, Name: right.Name, ResourceRequest: true,
		APIGroup: right.Resource.Group, APIVersion: "*", Resource: right.Resource.Resource,
	}
}

// ask refuses a field to those without the right that it needs.
func ask(ctx context.Context, by authorizer.Authorizer, a admission.Attributes, need weave.Need) error {
	decision, reason, err := by.Authorize(ctx, attributesOf(a.GetUserInfo(), need.Right))
	if decision == authorizer.DecisionAllow {
		return nil
	}
	detail := fmt.Sprintf("%s: you need the right to %q %s", need.Path, need.Verb, need.Resource)
	if need.Name != "" {
		detail += fmt.Sprintf(" %q", need.Name)
	}
	if need.Namespace != "" {
		detail += fmt.Sprintf(" in namespace %q", need.Namespace)
	}
	return lacksRight(a, detail, reason, err)
}

// lacksRight refuses what takes a right that somebody has not, with what the authorizer says of it.
func lacksRight(a admission.Attributes, detail, reason string, err error) error {
	switch {
	case err != nil:
		detail += ": " + err.Error()
	case reason != "":
		detail += ": " + reason
	}
	return admission.NewForbidden(a, errors.New(detail))
}
