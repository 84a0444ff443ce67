/**
 * Whether code of generation `own` may run a message: one of its own generation, of an older one, or of none. Newer ones may be of a shape that it
 * does not know. Code without a generation runs everything.
 */
export function mayRun(own: number | null, { generation }: { readonly generation: number | null }): boolean {
  return own === null || generation === null || generation <= own
}
