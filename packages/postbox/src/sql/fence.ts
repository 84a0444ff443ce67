/** The proof that one row may be settled: its place and the token of the claim that leased it. */
export interface Fence {
  readonly seq: string
  readonly token: string
}

/** The seqs and tokens of fences as two array literals. Not as arrays of the client's: some clients cannot encode those. */
export function fenceArrays(fences: readonly Fence[]): readonly [seqs: string, tokens: string] {
  return [arrayOf(fences.map((fence) => fence.seq)), arrayOf(fences.map((fence) => fence.token))]
}

/** For values that need no quoting. */
export function arrayOf(values: readonly (string | number)[]): string {
  return `{${values.join(',')}}`
}

/**
 * That a row `m` is one of those in $1, which are seqs, or records with a seq. It says no more than the join with them does, but to the planner: it is a look at so many rows of
 * the primary key, whatever it believes of the table. Without it, one that was never analysed, or vacuumed while it was nearly empty, was read as a whole for each
 * flush of several claims, and where it was believed to hold five rows, compared with each of theirs (15 s for 500 of 300,000).
 */
export const amongSeqs = 'm.seq = any($1::text::bigint[])'
export const amongRecords =
  'm.seq = any(array(select f.seq from jsonb_to_recordset($1::text::jsonb) as f(seq bigint)))'
