package placement

import (
	"fmt"
	"strings"
)

// remarkOverflow says what is not in the first group, where all should be.
func (c *cycle) remarkOverflow() string {
	beyond := Decision{}
	for i := range c.candidates {
		if k := &c.candidates[i]; k.placed && k.group > 0 && !k.leaves && k.share > 0 {
			share := beyond[c.groups[k.group].name]
			share.Replicas += int32(k.share)
			beyond[c.groups[k.group].name] = share
		}
	}
	if len(beyond) == 0 || c.strategy.name == EachCluster {
		return ""
	}
	var texts []string
	for i := range c.groups {
		if share, is := beyond[c.groups[i].name]; is {
			texts = append(texts, fmt.Sprintf("%d in group %q", share.Replicas, c.groups[i].name))
		}
	}
	return "beyond the first group: " + enumerate(texts)
}

// remarkFew says that there are fewer clusters than the policy asks for.
func (c *cycle) remarkFew() string {
	if c.minClusters == 0 || !c.divides() && c.strategy.name != Duplicate {
		return ""
	}
	used := int64(0)
	for i := range c.candidates {
		if k := &c.candidates[i]; k.placed && (k.share > 0 || c.replicas == 0) && !k.leaves && !k.evicted {
			used++
		}
	}
	if used >= c.minClusters || c.divides() && used >= c.replicas {
		return ""
	}
	return fmt.Sprintf("on %d clusters, although %s asks for at least %d", used, c.policy, c.minClusters)
}

// remarkBounds says which rules of the policy leave replicas unplaced although clusters have room.
func (c *cycle) remarkBounds() string {
	if c.unplaced == 0 {
		return ""
	}
	var bounds []string
	for i := range c.groups {
		g := &c.groups[i]
		if g.limit < unbounded && c.inGroup(i) >= g.limit {
			bounds = append(bounds, fmt.Sprintf("group %q is at its limit of %d", g.name, g.limit))
		}
	}
	for i := range c.spread {
		if s := &c.spread[i]; strict(s) && c.divides() {
			bounds = append(bounds, fmt.Sprintf("no value of %s may have more than %d replicas above another", s.TopologyKey, skewOf(s)))
		}
	}
	return strings.Join(bounds, ", ")
}

// inGroup is what a group has got.
func (c *cycle) inGroup(group int) (sum int64) {
	for i := range c.candidates {
		if k := &c.candidates[i]; k.group == group && !k.leaves {
			sum += k.share
		}
	}
	return sum
}

// displaced tells whether another decision could be made once there is room where the policy wants replicas most.
func (c *cycle) displaced() bool {
	if !c.returns || c.request.Workload.Numbered || c.request.Workload.Fixed {
		return false
	}
	used := 0
	for i := range c.candidates {
		if k := &c.candidates[i]; k.placed && k.share > 0 {
			used++
			if k.group > 0 && c.strategy.name != EachCluster {
				return true
			}
		}
	}
	return used > 1 && (c.strategy.name == Together || c.strategy.name == ByPacking)
}
