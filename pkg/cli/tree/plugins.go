package tree

import (
	"cmp"
	"fmt"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/app/words"
)

// longestName bounds what a name that a plugin has given takes of a row.
const longestName = 72

// byPlugins shows what plugins have found of an application in each of their deploy targets, as far as the status has it.
func byPlugins(app *v1alpha1.Application) (out []*Node) {
	for i := range app.Status.Plugins {
		of := &app.Status.Plugins[i]
		n := &Node{Kind: "Plugin", Name: text.Line(of.Plugin+"/"+of.DeployTarget, longestName), Relation: Owns, Health: healthOf(of.Health)}
		n.Status = phrases(string(cmp.Or(of.Sync, v1alpha1.SyncUnknown)), string(cmp.Or(of.Health, v1alpha1.HealthUnknown)))
		n.problem(text.Line(of.Message, longest))
		n.Children = found(of.Resources)
		if more := int(of.ResourceCount) - len(of.Resources); more > 0 {
			n.Status = phrases(n.Status, fmt.Sprintf("%d more resources", more))
		}
		for j := range of.Differences {
			n.problem(fmt.Sprintf("%s: %s", of.Differences[j].Kind, words.Difference(&of.Differences[j])))
		}
		out = append(out, n)
	}
	return out
}

// found shows the resources of a deploy target, each below the first of those that it belongs to. However they belong to each other, each is shown once: those that
// belong to what is not there, or to each other in circles, stand at the top.
func found(resources []v1alpha1.PluginResource) (top []*Node) {
	nodes, parents := map[string]*Node{}, map[string]string{}
	for i := range resources {
		of := &resources[i]
		if nodes[of.ID] == nil {
			nodes[of.ID] = resourceOf(of)
		}
	}
	for i := range resources {
		of := &resources[i]
		for _, parent := range of.Parents {
			if nodes[parent] != nil && parents[of.ID] == "" && !above(parents, parent, of.ID) {
				parents[of.ID] = parent
			}
		}
	}
	shown := map[string]bool{}
	for i := range resources {
		id := resources[i].ID
		if shown[id] {
			continue
		}
		shown[id] = true
		if parent := nodes[parents[id]]; parents[id] != "" {
			parent.Children = append(parent.Children, nodes[id])
		} else {
			top = append(top, nodes[id])
		}
	}
	return top
}

// above reports whether a resource is the other one, or belongs to it.
func above(parents map[string]string, id, other string) bool {
	for ; id != ""; id = parents[id] {
		if id == other {
			return true
		}
	}
	return false
}

func resourceOf(of *v1alpha1.PluginResource) *Node {
	n := &Node{
		Kind: text.Line(cmp.Or(of.Type, "Resource"), longestName), Name: text.Line(cmp.Or(of.Name, of.ID), longestName), Relation: Owns,
		Health: healthOf(of.Health), Status: string(cmp.Or(of.Health, v1alpha1.HealthUnknown)),
	}
	if message := text.Line(of.Message, longest); of.Health == v1alpha1.Degraded {
		n.problem(message)
	} else {
		n.Status = phrases(n.Status, message)
	}
	return n
}
