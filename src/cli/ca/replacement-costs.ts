// What it costs to have a lost key made anew. Apart from the command, so that its help can be printed without a plane.

export const costOfReplacing = {
  issuing: 'certificates in use stay valid; revocation lists of the lost CA can no longer be signed',
  recovery:
    'connected machines learn the new recovery root; one that is off meanwhile needs muster node repair-bundle or a new token',
  statement:
    'machines take the new key with their next renewal; one whose certificate ends before that needs muster node repair-bundle',
  bearer: 'bearer tokens that were handed out before no longer work; machines get new ones with their next renewal',
  journal:
    'heads that the lost key has signed are verified by its public half in keys/journal.KEY_ID.key, which has to be there; with PostgreSQL restart every plane, so that it signs with the new key',
} as const

export const replacementCosts = Object.entries(costOfReplacing)
