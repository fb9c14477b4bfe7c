package insight

import "time"

// Learned is what changes tell that was not known before.
type Learned struct {
	// Succeeded and Failed count the changes that are new.
	Succeeded, Failed int
	// Undone counts those that had succeeded, and turn out to have failed.
	Undone int
	// Leads are how long commits took that have been released.
	Leads []time.Duration
	// Restores are how long failures lasted that have ended.
	Restores []time.Duration
}

// Learn compares the changes of an application with those that were known before.
func Learn(before, after []Change) Learned {
	known := map[string]*Change{}
	for i := range before {
		known[before[i].Release] = &before[i]
	}
	var out Learned
	for i := range after {
		change, last := &after[i], known[after[i].Release]
		switch {
		case last == nil && change.Failed:
			out.Failed++
		case last == nil:
			out.Succeeded++
			if change.Lead > 0 {
				out.Leads = append(out.Leads, change.Lead)
			}
		case change.Failed && !last.Failed:
			out.Undone++
		}
		if change.Restored > 0 && (last == nil || last.Restored == 0) {
			out.Restores = append(out.Restores, change.Restored)
		}
	}
	return out
}
