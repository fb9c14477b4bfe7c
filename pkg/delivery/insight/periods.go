package insight

import "time"

// Unit is how long the periods are that figures are told for.
type Unit string

const (
	// Day is from midnight to midnight, in UTC.
	Day Unit = "day"
	// Month is a calendar month, in UTC.
	Month Unit = "month"
)

// begin is when the period began that a time is in.
func (u Unit) begin(at time.Time) time.Time {
	year, month, day := at.UTC().Date()
	if u == Month {
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// next is when the period after the one that began then begins.
func (u Unit) next(begin time.Time) time.Time {
	if u == Month {
		return begin.AddDate(0, 1, 0)
	}
	return begin.AddDate(0, 0, 1)
}

// Period is some time, and its figures.
type Period struct {
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	Figures
}

// Whole sums up all changes that ended between two times.
func Whole(changes []Change, since, until time.Time) Period {
	return Period{Begin: since, End: until, Figures: Sum(between(changes, since, until), until.Sub(since))}
}

// By sums up the changes that ended between two times for each day or month, also for those in which none did. The first and the last period may
// be cut short by the times.
func By(changes []Change, unit Unit, since, until time.Time) []Period {
	var out []Period
	for begin := unit.begin(since); begin.Before(until); begin = unit.next(begin) {
		from, to := begin, unit.next(begin)
		if from.Before(since) {
			from = since
		}
		if to.After(until) {
			to = until
		}
		out = append(out, Whole(changes, from, to))
	}
	return out
}

func between(changes []Change, since, until time.Time) []Change {
	var out []Change
	for _, change := range changes {
		if !change.Ended.Before(since) && change.Ended.Before(until) {
			out = append(out, change)
		}
	}
	return out
}
