// Where stages lie: the placements that every file knows, under names that it may give to others.
placement linear { stages ranks; stage s on rank s; }

// V chunks a rank, from the first rank to the last and again.
placement loop(V: int >= 1) { stages ranks * V; stage s on rank s % ranks; }

// The same, but back at each end.
placement wave(V: int >= 1) {
  stages ranks * V;
  stage s on rank s / ranks % 2 == 0 ? s % ranks : ranks - 1 - s % ranks;
}
placement v { stages 2 * ranks; stage s on rank min(s, 2 * ranks - 1 - s); }
