package rows

import "kctl/admin/plan"

// Scenario is a failure that can be rehearsed.
type Scenario struct {
	Name    string `json:"name"`
	Finding string `json:"finding" doc:"the finding of doctor that it makes"`
	Summary string `json:"summary"`
	Lesson  string `json:"lesson" doc:"what to try"`
	Running bool   `json:"running" doc:"it is under way: lab undo takes it back"`
}

// ScenarioKind describes Scenario.
var ScenarioKind = Kind[Scenario]{
	Name: "Scenario", Title: "scenarios",
	ID: func(s Scenario) string { return s.Name },
	Columns: []Column[Scenario]{
		{Name: "NAME", Cell: func(s Scenario) string { return s.Name }},
		{Name: "RUNNING", Cell: func(s Scenario) string { return yesNo(s.Running) }},
		{Name: "FINDING", Cell: func(s Scenario) string { return s.Finding }},
		{Name: "SUMMARY", Cell: func(s Scenario) string { return s.Summary }},
		{Name: "TRY", Wide: true, Cell: func(s Scenario) string { return s.Lesson }},
	},
}

// OfScenario turns a scenario into a row.
func OfScenario(s plan.LabScenario, running bool) Scenario {
	return Scenario{s.Name, s.Finding, s.Summary, s.Lesson, running}
}
