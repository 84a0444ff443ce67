/** A hundred years: longer is a mistake in the unit, and far before Postgres' or JavaScript's calendars end. */
export const longestMs = 36_525 * 86_400_000
