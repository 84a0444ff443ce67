/**
 * A view's definition without what Postgres adds and leaves out as its version likes: letter case, white space, quotes and brackets, aliases, and the
 * table before a column. Two that differ in nothing else are the same view, as long as its conditions know no `or`; the names of its columns are compared elsewhere.
 *
 * Postgres keeps a view as a tree and prints that. The tree itself differs from version to version and holds numbers of this database only;
 * a hash in a comment would survive `create or replace view`, and not every restore.
 */
export function normalDefinition(definition: string): string {
  const tokens = tokensOf(definition)
  const kept: string[] = []
  for (let place = 0; place < tokens.length; ) place += keep(tokens, place, kept)
  return kept.join(' ')
}

interface Token {
  readonly text: string
  readonly isWord: boolean
}

/** Identifiers in quotes, texts, operators, words; brackets and semicolons are passed over. */
const token = /"(?:[^"]|"")*"|'(?:[^']|'')*'|::|[<>=]+|[\p{L}_][\p{L}\p{N}_$]*|[^\s();]/gu

function tokensOf(sql: string): readonly Token[] {
  return Array.from(sql.matchAll(token), ([text]) => {
    if (text.startsWith('"')) return { text: text.slice(1, -1).replaceAll('""', '"'), isWord: false }
    const isWord = /^[\p{L}_]/u.test(text)
    return { text: isWord ? text.toLowerCase() : text, isWord }
  })
}

/** Keeps what is at a place, if it says anything, and returns how many tokens it was made of. */
function keep(tokens: readonly Token[], place: number, kept: string[]): number {
  const at = (offset: number): string => tokens[place + offset]?.text ?? ''
  if (isKeyword(tokens[place], 'from')) {
    kept.push('from', `${at(1)}.${at(3)}`)
    const next = tokens[place + 4]
    const hasAlias = next !== undefined && !['where', 'union'].some((word) => isKeyword(next, word))
    return hasAlias ? 5 : 4
  }
  if (isKeyword(tokens[place], 'as')) return 2
  if (at(1) === '.') return 2
  kept.push(at(0))
  return 1
}

function isKeyword(given: Token | undefined, word: string): boolean {
  return given?.isWord === true && given.text === word
}
