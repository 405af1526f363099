#pragma once
// Request and answer of a layout, and the line format in which both pass through the pipe to cutaway-layout. No Qt
// here: the process starts faster without it. Lengths are points (1/72 inch), y grows downwards.
//
// Request, one record a line:          Answer:
//   cutaway-layout 1                     cutaway-layout 1
//   o <long edge ranks>                  s <width> <height>
//   c <parent or -1>          cluster    m <note, to the end of the line>      (only if there is something to say)
//   n <width> <height> <cluster or -1>   n <x> <y>                             centre
//   i <node>                  in order   (see Node::inOrder)
//   e <from> <to> <weight>               b <x> <y> <width> <height>            cluster box, all 0 when empty
//   .                                    e <x0> <y0> ... <x3n> <y3n>           cubic Bezier; "e" alone: a stub
//                                        .
// Clusters come before the nodes that name them. Indices count from 0 in order of appearance.
#include <iosfwd>
#include <string>
#include <vector>

#include "cutaway/result.h"

namespace cutaway::ui {

struct LayoutPoint {
    double x = 0, y = 0;
};
struct LayoutBox {
    double x = 0, y = 0, width = 0, height = 0;
};

struct LayoutProblem {
    struct Cluster {
        int parent = -1;
    };
    struct Node {
        double width = 0, height = 0;
        int cluster = -1;
        bool inOrder = false;  // those it leads to stand from left to right in the order of its edges
    };
    struct Edge {
        int from = 0, to = 0;
        int weight = 1;
    };
    std::vector<Cluster> clusters;
    std::vector<Node> nodes;
    std::vector<Edge> edges;
    /// Edges that span more ranks are left out of the layout and answered as stubs: they, not the nodes, make dot slow.
    int longEdgeRanks = 20;
};

struct LayoutAnswer {
    double width = 0, height = 0;
    std::vector<LayoutPoint> centres;
    std::vector<LayoutBox> clusters;
    /// Bezier control points (1 + 3n) from tail to head; empty for a stub.
    std::vector<std::vector<LayoutPoint>> routes;
    std::string note;
};

constexpr double kRankGap = 34, kNodeGap = 18;

std::string writeProblem(const LayoutProblem& problem);
std::string writeAnswer(const LayoutAnswer& answer);
/// Errors name the line. Every index is checked, sizes must be finite and not negative.
Result<LayoutProblem> readProblem(std::istream& in);
/// `problem` says how many records of each kind there must be.
Result<LayoutAnswer> readAnswer(std::istream& in, const LayoutProblem& problem);

/// Longest-path rank of each node along the edges; sources stand right above their first user. Edges against the
/// node order are ignored, so that a cycle cannot make it run on.
std::vector<int> layoutRanks(const LayoutProblem& problem);

/// Our own layered layout: ranks, median ordering, least-squares positions. About linear; always succeeds. Clusters
/// get the bounding box of their nodes and may overlap.
LayoutAnswer layoutPlainly(const LayoutProblem& problem);

/// Graphviz dot with a capped network simplex. May take long, and Graphviz may abort: call it in a child process only.
Result<LayoutAnswer> layoutWithDot(const LayoutProblem& problem);

}  // namespace cutaway::ui
