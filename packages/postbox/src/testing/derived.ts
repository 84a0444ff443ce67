/** The same with some other methods; not a copy: what it has to show changes. */
export function derived<T extends object>(base: T, methods: Partial<T>): T {
  return Object.assign(Object.create(base), methods)
}
