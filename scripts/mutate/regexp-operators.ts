/** What can be broken in a regular expression: one anchor, class, quantifier or flag at a time. */
import type { AST } from '@eslint-community/regexpp'
import { RegExpParser, visitRegExpAST } from '@eslint-community/regexpp'

/** The literals that differ in one part. Each of them is an expression that JavaScript accepts. */
export function mutateRegExp(pattern: string, flags: string): readonly string[] {
  const mode = { unicode: flags.includes('u'), unicodeSets: flags.includes('v') }
  const tree = new RegExpParser().parsePattern(pattern, 0, pattern.length, mode)
  const patterns: string[] = []
  const change = ({ start, end }: AST.Node, text: string): void => {
    patterns.push(pattern.slice(0, start) + text + pattern.slice(end))
  }
  visitRegExpAST(tree, {
    onAssertionEnter(node) {
      if (node.kind === 'start' || node.kind === 'end') change(node, '')
      else if (node.kind === 'word') change(node, node.negate ? String.raw`\b` : String.raw`\B`)
      else if (node.kind === 'lookahead' || node.kind === 'lookbehind') change(node, toggledLook(node))
    },
    onCharacterClassEnter(node) {
      change(node, node.negate ? node.raw.replace('[^', '[') : node.raw.replace('[', '[^'))
    },
    onCharacterSetEnter(node) {
      if (node.kind === 'digit' || node.kind === 'space' || node.kind === 'word') change(node, toggledSet(node.raw))
    },
    onQuantifierEnter(node) {
      const { raw } = node.element
      const sign = node.raw.slice(raw.length)
      if (sign.startsWith('+')) change(node, `${raw}*${sign.slice(1)}`)
      else if (sign.startsWith('*')) change(node, `${raw}+${sign.slice(1)}`)
      else change(node, raw)
    },
  })
  const literals = patterns.filter((text) => text !== '').map((text) => `/${text}/${flags}`)
  if (flags.includes('i')) literals.push(`/${pattern}/${flags.replace('i', '')}`)
  return literals.filter(isAccepted)
}

function toggledLook({ raw, negate }: AST.LookaroundAssertion): string {
  const at = raw.search(/[=!]/)
  return raw.slice(0, at) + (negate ? '=' : '!') + raw.slice(at + 1)
}

function toggledSet(raw: string): string {
  const letter = raw[1] ?? ''
  return `\\${letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()}`
}

function isAccepted(literal: string): boolean {
  const end = literal.lastIndexOf('/')
  try {
    // eslint-disable-next-line regexp/built -- It is never used on a text.
    return new RegExp(literal.slice(1, end), literal.slice(end + 1)) instanceof RegExp
  } catch {
    return false
  }
}
