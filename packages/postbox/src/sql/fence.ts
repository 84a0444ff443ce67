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
function arrayOf(values: readonly string[]): string {
  return `{${values.join(',')}}`
}
