package identity

import "testing"

func TestTheRevisionOfACluster(t *testing.T) {
	const held = `{"east":{"replicas":1,"revision":"web-v10","target":"eu"},"west":{"replicas":1,"revision":"web-v9","target":"us"},"south":{"replicas":1}}`
	for name, test := range map[string]struct {
		decision, breakdown, cluster string
		want                         Revision
	}{
		"that of its share":                               {decision: held, cluster: "east", want: Revision{"web-v10", "eu"}},
		"none if its share names none":                    {decision: held, cluster: "south"},
		"none if nobody names any":                        {decision: toEast, cluster: "east"},
		"for one that leaves, the one that it has":        {decision: held, breakdown: `{"north":{"revision":"web-v3","target":"asia"}}`, cluster: "north", want: Revision{"web-v3", "asia"}},
		"its share goes before what it has":               {decision: held, breakdown: `{"east":{"revision":"web-v3","target":"asia"}}`, cluster: "east", want: Revision{"web-v10", "eu"}},
		"for one that is not decided about, the earliest": {decision: held, cluster: "north", want: Revision{"web-v9", "us"}},
		"none if nothing can be read":                     {decision: `{"revision":"web-v1"`, cluster: "east"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RevisionIn(deployment(test.decision, test.breakdown), test.cluster); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
	for want, above := range map[int][2]string{
		1: {toEast, ""},
		3: {held, ""},
		4: {held, `{"east":{"revision":"web-v9","target":"us"},"north":{"revision":"web-v3","target":"asia"}}`},
	} {
		if got := RevisionsOf(deployment(above[0], above[1])); len(got) != want {
			t.Errorf("%v of %v, want %d", got, above, want)
		}
	}
}

func TestARevisionIsReadAsItIsWritten(t *testing.T) {
	for text, want := range map[string]Revision{"web-v7/eu": {"web-v7", "eu"}, "": {}, "web-v7": {}, "/eu": {}} {
		got := ParseRevision(text)
		if got != want || want != (Revision{}) && got.String() != text {
			t.Errorf("%q reads as %v, which is written as %q", text, got, got)
		}
	}
}
