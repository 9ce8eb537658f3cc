package rows

// TopicChange is one planned or made change of topics alter: a new partition, or a configuration value.
type TopicChange struct {
	Topic  string  `json:"topic"`
	What   string  `json:"what" doc:"partition N, or a configuration key"`
	Action string  `json:"action" doc:"add, set, delete, or none"`
	Before *string `json:"before" doc:"null for nothing"`
	After  *string `json:"after" doc:"replicas in their order, the preferred leader first; or the value; null for nothing"`
	Done   bool    `json:"done"`
	Error  string  `json:"error"`
}

// TopicChangeKind describes TopicChange.
var TopicChangeKind = Kind[TopicChange]{
	Name: "TopicChange", Title: "changes",
	ID: func(c TopicChange) string { return c.Topic + " " + c.What },
	Columns: []Column[TopicChange]{
		{Name: "TOPIC", Cell: func(c TopicChange) string { return c.Topic }},
		{Name: "WHAT", Cell: func(c TopicChange) string { return c.What }},
		{Name: "ACTION", Cell: func(c TopicChange) string { return c.Action }},
		{Name: "BEFORE", Cell: func(c TopicChange) string { return orDash(c.Before) }},
		{Name: "AFTER", Cell: func(c TopicChange) string { return orDash(c.After) }},
		{Name: "RESULT", Cell: func(c TopicChange) string { return outcome(c.Done, c.Error) }},
	},
}
