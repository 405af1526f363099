#pragma once
// Any graph beside any other: graphs of other files and sessions as places of this one, and what a difference comes to.
#include "cutaway/session.h"

namespace cutaway {

/// Keeps a graph of a file beside what is open. Its place can be compared, described and read like those of runs.
Result<Place> keepFile(Session& session, const std::string& path, const OpenSettings& settings = {},
                       const Progress& progress = {});
/// The same of a place of another session.
Result<Place> keepGraph(Session& session, const Session& from, const Place& place);
/// Whether a place is a graph that is kept so.
inline bool isKept(const Place& place) { return place.run < -1; }

/// Nodes that differ and hang together.
struct DiffPart {
    std::string module;          // that most of them are in; may be empty
    std::vector<NodeKey> nodes;  // in the order of the union
    int added = 0, removed = 0, edited = 0, rewired = 0;
};
struct DiffReport {
    int nodesBefore = 0, nodesAfter = 0;
    int added = 0, removed = 0, edited = 0;
    int rewired = 0;                       // the same call of other values
    int distance = 0;                      // the sum: how many nodes to touch to make one graph of the other
    int sure = 0, likely = 0, unsure = 0;  // pairs
    std::vector<DiffPart> parts;           // the largest first
    bool same() const { return distance == 0; }
};
DiffReport reportOf(const UnionGraph& graph);

/// A graph that PyTorch recorded before its post-grad passes, and what they made of it.
struct RecordedPair {
    std::string before, after;  // names of graphs of one file or folder
};
/// Of a trace, log, debug folder or folder of recorded stages, by the names of its graphs.
std::vector<RecordedPair> recordedPostGrad(const std::vector<std::string>& graphs);

/// Our post-grad passes on the graph that PyTorch's were given, and PyTorch's result.
struct PostGradPlaces {
    Place theirs, ours;
};
/// The session has `pair.before` of the file open. Inputs named `primals_1` or `tangents_1` are those of training.
Result<PostGradPlaces> postGradBesideRecorded(Session& session, const RecordedPair& pair, CompileRequest request,
                                              const Progress& progress = {});

}  // namespace cutaway
