package main

// What the studies published, as far as it is known here in figures (Bullot, Cottrell, Hughes-Jones, 2003: 622 Mb/s, 200 ms,
// a production network with other traffic). Mb/s.

const (
	publishedVersus  = "published: Scalable up to 3 times what Reno has alone"
	publishedCrowd   = "published: FAST 215 ± 15 while Reno grows from 87 with one stream to 150 with 8; 5 Reno streams are ahead of one Scalable"
	publishedWindow  = "published at 16 MB: Reno 220 ± 60 alone, FAST 295 ± 64 alone, FAST 285 ± 77 against Reno 45 ± 30"
	publishedSharing = "published as pictures only"
)

// publishedFigure is a point: at is a control, a number of streams, or a window in MB.
type publishedFigure struct {
	name string
	at   string
	figure
}

// publishedByWindow is by the window in MB.
var publishedByWindow = []publishedFigure{
	{"published: Reno alone", "16", figure{220, 60}},
	{"published: FAST alone", "16", figure{295, 64}},
	{"published: FAST beside Reno", "16", figure{285, 77}},
}

// publishedBesideMany is by the number of Reno streams.
var publishedBesideMany = []publishedFigure{
	{"published: FAST", "1", figure{215, 15}}, {"published: FAST", "2", figure{215, 15}}, {"published: FAST", "3", figure{215, 15}},
	{"published: FAST", "4", figure{215, 15}}, {"published: FAST", "5", figure{215, 15}}, {"published: FAST", "6", figure{215, 15}},
	{"published: FAST", "7", figure{215, 15}}, {"published: FAST", "8", figure{215, 15}},
	{"published: Reno beside FAST", "1", figure{87, 0}}, {"published: Reno beside FAST", "8", figure{150, 0}},
}

// publishedByControl is by the control, at a window of 16 MB.
var publishedByControl = []publishedFigure{
	{"published alone (16 MB)", "reno", figure{220, 60}},
	{"published alone (16 MB)", "fast", figure{295, 64}},
	{"published beside Reno (16 MB)", "fast", figure{285, 77}},
	{"published, that Reno stream (16 MB)", "fast", figure{45, 30}},
}
