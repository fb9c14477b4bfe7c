package connection

import "testing"

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		name          string
		answered      []bool
		silent, again bool
	}{
		{name: "one that has not been asked answers"},
		{name: "one that goes on answering does not begin to", answered: []bool{true, true}},
		{name: "one that does not answer is silent", answered: []bool{true, false}, silent: true},
		{name: "one that answers again says so", answered: []bool{false, true}, again: true},
		{name: "one that falls silent again has still begun to answer since", answered: []bool{false, true, false}, silent: true, again: true},
		{name: "what has begun twice is told once", answered: []bool{false, true, false, true}, again: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			answers := NewAnswers()
			begins := answers.Again()
			for _, answered := range test.answered {
				answers.Note(answered)
			}
			if answers.Silent() != test.silent {
				t.Errorf("Silent = %t, want %t", answers.Silent(), test.silent)
			}
			again := false
			select {
			case <-begins:
				again = true
			default:
			}
			if again != test.again {
				t.Errorf("Again = %t, want %t", again, test.again)
			}
		})
	}
}

func TestNobodysAnswersNeverEnd(t *testing.T) {
	var answers *Answers
	if answers.Silent() || answers.Again() != nil {
		t.Error("a cluster that nobody asks is silent")
	}
}
