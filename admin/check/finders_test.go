package check

// Finders are the checks that can run over the facts, each by itself: what they share is made once. They return how many findings
// they have.
func Finders(f *Facts) map[string]func() int {
	s := newScene(f)
	s.health = Health(Input{Snapshot: f.Snapshot, Transitions: f.Transitions, Session: f.sessionMax()})
	out := map[string]func() int{}
	for _, c := range Checks() {
		if f.missing(c.Needs) == "" && f.Cannot[c.ID] == "" {
			out[c.ID] = func() (n int) {
				c.find(s, func(string, string, string) { n++ })
				return n
			}
		}
	}
	return out
}
