import { expect, test } from 'vitest'
import { nearestName } from '../../src/contract/nearest-name.ts'

test.each([
  ['prot', 'port'],
  ['potr', 'port'],
  ['hots', 'host'],
  ['generatekey', 'generate-key'],
  ['x', undefined],
  ['verbose', undefined],
])('%s is meant to be %s', (name, meant) => {
  expect(nearestName(name, ['host', 'port', 'generate-key', 'version'])).toBe(meant)
})

test('a variable that Kubernetes sets for a service is not mistaken for a misspelling', () => {
  expect(nearestName('OPENHANDS_SERVICE_PORT', ['OPENHANDS_SERVER_PORT'])).toBeUndefined()
})
