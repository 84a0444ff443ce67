/** For an answer that should not have been a promise: nobody waits for it, and its rejection must not end the process. */
export function ignoreRejection(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  new Promise((resolve) => resolve(value)).catch(() => {})
}
