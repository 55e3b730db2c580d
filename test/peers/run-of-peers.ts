// `npm run test:peers`: the files of this folder alone, with the counts that the issues state. `npm test` runs them with small ones.

export const peersFolder = 'test/peers/'

export const peersVariable = 'MUSTER_PEERS'

/** Also in the long run. */
export const isPeersRun = process.env[peersVariable] === '1'
