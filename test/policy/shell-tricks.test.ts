import { describe, expect, test } from 'vitest'
import { decideCommand } from './decisions.ts'
import { TRICKED, TRICKS } from './shell-tricks.ts'

const LINKS = { links: { '/work/project/link': '/etc' } }

describe('no allow rule is bypassed by', () => {
  test('a list of at least 150 tricks', () => {
    expect(Object.values(TRICKS).flat().length).toBeGreaterThanOrEqual(150)
  })

  describe.each(Object.entries(TRICKS))('%s', (_what, commands) => {
    test.each(commands)('%j', (command) => {
      expect(decideCommand(command, { ...TRICKED, ...LINKS }).behavior).not.toBe('allow')
      expect(decideCommand(command, { ...TRICKED, ...LINKS, mode: 'deny' }).behavior).toBe('deny')
    })
  })
})
